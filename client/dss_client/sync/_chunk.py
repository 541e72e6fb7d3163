"""Records of one piece laid open for threads, each of which takes the next one by itself.

Invariant: a record is handed out by being taken from `rows`, to one thread; none is handed out
after the chunk was called back. Taking needs no lock: CPython takes a step of a list's iterator,
and empties the iterator into another list, without letting other threads run. Everything else that
threads and the loop do is under one lock.
"""

import threading
from collections.abc import Iterator
from itertools import islice
from operator import length_hint
from typing import TYPE_CHECKING

from dss_client.limits import FLUSH_RECORDS, HANDY_RECORDS
from dss_client.record import row_of

if TYPE_CHECKING:
    from dss_client._handout import Handout
    from dss_client._ordered import Aside, Ordered
    from dss_client.record import DeliveredRecord


class Chunk:
    """Opened, noted and called back in the loop."""

    __slots__ = ("_lock", "_records", "_to_make", "handout", "is_spent", "last", "rows")

    def __init__(self, handout: "Handout", records_max: int) -> None:
        self.handout = handout
        self.last: DeliveredRecord | None = None
        """The last record handed out, as far as it was noted."""
        self.is_spent = False
        """Nothing is left, and a thread has noticed."""
        self._lock = threading.Lock()
        self._to_make = islice(handout.records(), records_max)
        self._records: list[DeliveredRecord] = []
        self.rows: Iterator[DeliveredRecord] = iter(())
        self.lay_out()

    def lay_out(self) -> bool:
        """Put records into `rows`, if any are left; called by any thread."""
        with self._lock:
            if not length_hint(self.rows):
                self._note(0)
                self._make()
            return not self.is_spent

    def note(self) -> None:
        """Tell the piece how far it was handed out."""
        with self._lock:
            self._note(length_hint(self.rows))

    def call_back(self) -> None:
        """Hand out nothing more: the records that are left go back to the piece."""
        with self._lock:
            left = list(self.rows)
            self._note(len(left))
            self._records = []  # a thread that looks again has taken none of those left
            self._to_make = islice((), 0)
            self.handout.put_back(*map(row_of, left))

    def _make(self) -> None:
        try:
            # Few at once: more would outlive the collector's youngest generation.
            self._records = list(islice(self._to_make, HANDY_RECORDS))
            self.rows = iter(self._records)
        except BaseException:
            # Ctrl-C while they were made: none of them was handed out.
            self._records = []
            self.rows = iter(())
            self.handout.make_anew()
            self._to_make = islice(self.handout.records(), FLUSH_RECORDS)
            raise
        self.is_spent = not self._records

    def _note(self, left: int) -> None:
        taken = len(self._records) - left
        if taken:
            self.last = self._records[taken - 1]
            self.handout.last_offset = self.last._at


class QuietChunk(Chunk):
    """Records of an ordered group without a busy key: one thread takes them, and acknowledges each
    before it takes the next. Any other way of taking calls the chunk back first.
    """

    __slots__ = ()


class PickedChunk:
    """Records of an ordered group, each of another key, laid open; made when the chunk is
    opened."""

    __slots__ = ("_lock", "_noted", "_order", "_picked", "is_spent", "rows")

    def __init__(self, order: "Ordered", picked: "list[Aside]") -> None:
        self.is_spent = False
        """Nothing is left, and a thread has noticed."""
        self._lock = threading.Lock()
        self._order = order
        self._picked = picked
        self._noted = 0
        self.rows: Iterator[DeliveredRecord] = iter([aside.record() for aside in picked])

    @property
    def is_open(self) -> bool:
        """Whether any record is left."""
        return length_hint(self.rows) > 0

    def lay_out(self) -> bool:
        """Put records into `rows`, if any are left; called by any thread."""
        self.is_spent = not self.is_open
        return not self.is_spent

    def note(self) -> None:
        """Tell the grants what was handed out."""
        with self._lock:
            self._note(length_hint(self.rows))

    def _note(self, left: int) -> None:
        taken = len(self._picked) - left
        for aside in self._picked[self._noted : taken]:
            aside.grant.hand_out(aside.at)
        self._noted = taken

    def call_back(self) -> None:
        """Hand out nothing more: the records that are left go back."""
        with self._lock:
            left = len(list(self.rows))
            self._note(left)
            for aside in reversed(self._picked[self._noted :]):
                self._order.put_back(aside)
            del self._picked[self._noted :]
