"""A daemon in memory that keeps the order of keys over failures, as the real daemon promises it.

It knows one stream, whose records a test gives it by key. A failed record goes to a retry queue,
together with records that were sent behind it of its key; of each key in the queue only the oldest
is sent. The only check of the client is that it settles what it was sent: a test looks at what the
program gets.
"""

from collections.abc import Sequence
from pathlib import Path

from dss_api.v1 import sessions_pb2, types_pb2
from dss_client.testing import MemoryDaemon
from dss_core.build import build_frame
from dss_core.columns import Columns
from dss_core.progress import normalised
from support.retry_queue import entry, retried

Keys = Sequence[bytes | None]


class OrderedDaemon(MemoryDaemon):
    """Lends one stream, and plays its queues."""

    def __init__(self, socket: Path, max_deliver: int = 3) -> None:
        super().__init__(socket, partitions=1)
        self.ordered = self.hold_back = True
        self.max_deliver = max_deliver
        self.keys: list[bytes | None] = []
        self.out: set[int] = set()
        """Records of the stream that were sent and are unsettled."""
        self.done: list[int] = []
        """The acknowledged origins, in the order of their acks."""
        self.dead: list[int] = []
        self.failed: dict[int, int] = {}
        """How often each waiting origin failed."""
        self.entries: list[int] = []
        """The retry queue: the origin of each entry."""
        self.current: dict[int, int] = {}
        """The entry of each origin that waits."""
        self.sent_entries: set[int] = set()
        self.take_backs = 0
        self._asked: dict[int, list[int]] = {}
        self._held_keys: set[bytes] = set()

    def fill(self, keys: Keys) -> None:
        """Append and send a frame."""
        base = len(self.keys)
        self.keys += keys
        frame = build_frame(
            Columns([b"%d" % (base + at) for at in range(len(keys))], list(keys), "t"),
            partition=0,
            producer_id=b"p" * 16,
            sequence=len(self.streams[0].frames),
        )
        self.streams[0].append(frame)
        for at in range(base, len(self.keys)):
            if self._is_held(self.keys[at]):
                self._move(at, failures=0)
        goes = [at for at in range(base, len(self.keys)) if at not in self.failed]
        self.out.update(goes)
        for low, high in normalised((at, at + 1) for at in goes):
            self.deliver_part(1, low, high)
        self._send_entries()

    def _is_held(self, key: bytes | None) -> bool:
        waiting = {self.keys[at] for at in self.failed}
        return key is not None and (key in waiting or key in self._held_keys)

    def on_settle(self, settle: sessions_pb2.Settle) -> None:
        """Take acks first, then refusals, as the daemon does."""
        self.settles.append(settle)
        for each in settle.acked:
            for at in range(each.start, each.end):
                self._acked(at, settle.level)
        for nak in settle.naks:
            for at in range(nak.start, nak.end):
                self._refused(at, settle.level, rejects=nak.reject)
        self._send_entries()
        self._answer_settle(settle)

    def _acked(self, at: int, level: int) -> None:
        if not level and at in self.out:
            self.out.discard(at)
            self.done.append(at)
        if level and self.current.get(self.entries[at]) == at:
            self._settle_entry(at, self.done)

    def _settle_entry(self, at: int, where: list[int]) -> None:
        origin = self.entries[at]
        del self.current[origin], self.failed[origin]
        where.append(origin)

    def _refused(self, at: int, level: int, *, rejects: bool) -> None:
        if level:
            origin = self.entries[at]
            if self.current.get(origin) != at:
                return
            failures = self.failed[origin] + 1
            if rejects or failures >= self.max_deliver:
                self._settle_entry(at, self.dead)
            else:
                self._move(origin, failures)
        elif at in self.out:
            self._take_back(at, failures=1)
            if rejects:
                self._settle_entry(self.current[at], self.dead)

    def followers(self, at: int) -> list[int]:
        """The unsettled records that were sent behind a record of the same key."""
        key = self.keys[at]
        return sorted(each for each in self.out if each > at and self.keys[each] == key)

    def _take_back(self, at: int, failures: int) -> None:
        followers = self.followers(at) if self.keys[at] is not None else []
        self._move(at, failures)
        for each in followers:
            self._move(each, failures=0)
        self.take_backs += 1
        self._say_take_back([at, *followers], 0)

    def _say_take_back(self, offsets: list[int], number: int) -> None:
        ranges = normalised((at, at + 1) for at in offsets)
        self.say(
            take_back=sessions_pb2.TakeBack(
                grant=1,
                ranges=[types_pb2.Range(start=low, end=high) for low, high in ranges],
                number=number,
            )
        )

    def _move(self, origin: int, failures: int) -> None:
        self.out.discard(origin)
        self.failed[origin] = failures
        self.current[origin] = len(self.entries)
        self.entries.append(origin)

    def ask_back(self, at: int) -> None:
        """Ask for records back: the ack wait of a record of the stream ran out."""
        key = self.keys[at]
        assert key is not None
        self._held_keys.add(key)
        number = len(self._asked) + 1
        self._asked[number] = [at, *self.followers(at)]
        self._say_take_back(self._asked[number], number)

    def on_taken_back(self, item: sessions_pb2.TakenBack) -> None:
        """Move the records that were out."""
        super().on_taken_back(item)
        first, *followers = self._asked[item.number]
        key = self.keys[first]
        assert key is not None
        self._held_keys.discard(key)
        if item.out:
            self._move(first, failures=1)
            for each in followers:
                self._move(each, failures=0)
        elif first in self.out:
            self._take_back(first, failures=0)
        self._send_entries()

    def _send_entries(self) -> None:
        """Send the oldest entry of each key."""
        seen: set[bytes] = set()
        for origin in sorted(self.current):
            key, at = self.keys[origin], self.current[origin]
            if key is not None and (key in seen or key in self._held_keys):
                continue
            if key is not None and any(self.keys[each] == key for each in self.out):
                continue  # If nothing was taken back, followers come first
            if key is not None:
                seen.add(key)
            if at not in self.sent_entries:
                self.sent_entries.add(at)
                attempt = max(self.failed[origin], 1)
                self.say(deliver=retried(at, [entry(origin, attempt=attempt)], key=key))

    @property
    def is_over(self) -> bool:
        """Whether every record is done or dead."""
        return not self.out and not self.current
