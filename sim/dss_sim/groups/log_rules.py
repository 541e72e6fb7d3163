"""The promises of a log to producers and readers, judged by what it stored and answered.

For each stream it keeps its end, the offsets without a record and the keys of its records; for each
producer, what it stored there. Damage and the loss of a machine excuse exactly the records that
they took.
"""

from collections import defaultdict

from dss_core.errors import SequenceGap, SequenceTooOld
from dss_core.progress import Range
from dss_sim.groups.history import (
    Appended,
    Damaged,
    HandedOut,
    Key,
    Lost,
    Published,
    Stored,
    Unpublished,
)
from dss_sim.groups.violation import Violation

Place = tuple[int, int]
"""The base and the number of records."""


class _Sent:
    """The frames of one producer in one stream, by sequence."""

    __slots__ = ("contents", "damaged", "last", "stored")

    def __init__(self) -> None:
        self.stored: dict[int, Place] = {}
        self.damaged: dict[int, Place] = {}
        """Frames that cannot be read any more, and may be answered either way."""
        self.contents: dict[tuple[int, tuple[Key, ...]], int] = {}
        """The sequence under which each of its frames is stored. A frame that was routed anew is in
        parts, each with other keys."""
        self.last = -1
        """The newest frame that is stored and not lost."""


class _KeySent:
    """The records of one producer with one key in one topic, over all its storage topics."""

    __slots__ = ("last", "places")

    def __init__(self) -> None:
        self.places: dict[int, tuple[str, int]] = {}
        """Stream and base of each of its frames with the key, by content."""
        self.last = -1
        """The newest content that is stored and not lost."""


class LogRules:
    """Takes the events of the log."""

    def __init__(self) -> None:
        self.ends: dict[str, int] = {}
        self.holes: defaultdict[str, list[Range]] = defaultdict(list)
        """Offsets without a record: damaged, lost, or never assigned."""
        self._sent: defaultdict[str, defaultdict[str, _Sent]] = defaultdict(
            lambda: defaultdict(_Sent)
        )
        self._of_keys: defaultdict[tuple[str, str, Key], _KeySent] = defaultdict(_KeySent)
        """By topic, producer and key."""
        self._durability: dict[str, str] = {}
        self._keys: defaultdict[str, dict[int, Key]] = defaultdict(dict)
        """The keys of each stream, by offset; the key of a missing offset is unknown."""
        self._hurt: set[str] = set()
        """Storage topics that lost something: their producers may be left in doubt."""

    def end(self, stream: str) -> int:
        """Where a stream ends."""
        return self.ends.get(stream, 0)

    def is_hole(self, stream: str, offset: int) -> bool:
        """Whether an offset holds nothing."""
        return stream in self.holes and any(
            start <= offset < end for start, end in self.holes[stream]
        )

    def offsets_of(self, stream: str, key: Key) -> list[int]:
        """The offsets of a stream whose records have the key, in order."""
        return [at for at, each in self._keys[stream].items() if each == key]

    def appended(self, event: Appended) -> None:
        """S7: the log keeps what it has.

        Raises:
            Violation: its end is lower than before.
        """
        if event.end < self.end(event.stream):
            raise Violation("S7", f"the end was {self.ends[event.stream]} before: {event}")
        self.ends[event.stream] = event.end
        self._note_keys(event.stream, event.end - len(event.keys), event.keys)

    def stored(self, event: Stored) -> None:
        """S8: offsets are given once and without a gap, and follow the producer's sequences.

        S7: no sequence is stored twice, and no frame under two.

        Raises:
            Violation: they are not, or it is.
        """
        if event.base != self.end(event.stream):
            raise Violation("S8", f"the stream ended at {self.end(event.stream)}: {event}")
        sent = self._sent[event.stream][event.producer]
        if event.sequence in sent.stored:
            raise Violation("S7", f"stored before at {sent.stored[event.sequence]}: {event}")
        if event.sequence < sent.last:
            raise Violation("S8", f"stored behind sequence {sent.last}: {event}")
        before = sent.contents.setdefault((event.content, event.keys), event.sequence)
        if before != event.sequence:
            raise Violation("S7", f"stored before under sequence {before}: {event}")
        sent.stored[event.sequence] = event.base, event.records
        sent.last = event.sequence
        self.ends[event.stream] = event.base + event.records
        self._durability[event.stream] = event.durability
        self._note_keys(event.stream, event.base, event.keys)
        for key in set(event.keys) - {None}:
            self._check_order(event, key)

    def _check_order(self, event: Stored, key: Key) -> None:
        """S26: what a producer sends of a key is there once, in order, over all storage topics.

        Raises:
            Violation: it was there before, or something newer was.
        """
        sent = self._of_keys[_topic(event.stream), event.producer, key]
        before = sent.places.get(event.content)
        if before is not None:
            raise Violation("S26", f"{key!r} of the frame was stored before at {before}: {event}")
        if event.content < sent.last:
            newer = sent.places[sent.last]
            raise Violation("S26", f"{key!r} of a newer frame is stored at {newer}: {event}")
        sent.places[event.content] = event.stream, event.base
        sent.last = event.content

    def _note_keys(self, stream: str, base: int, keys: tuple[Key, ...]) -> None:
        self._keys[stream].update(enumerate(keys, base))

    def check_key(self, event: HandedOut) -> None:
        """S20: a record is handed out with the key that it was appended with, or without one.

        Raises:
            Violation: it has another.
        """
        keys = self._keys[event.stream]
        if keys.get(event.offset, event.key) != event.key:
            raise Violation("S20", f"appended with key {keys[event.offset]!r}: {event}")

    def published(self, event: Published) -> None:
        """S7: an acknowledged frame is where the producer was told, the first time and again.

        Raises:
            Violation: it does not.
        """
        sent = self._sent[event.stream][event.producer]
        place = event.base, event.records
        if place not in (sent.stored.get(event.sequence), sent.damaged.get(event.sequence)):
            found = sent.stored.get(event.sequence)
            raise Violation("S7", f"it lies at {found} (base, records): {event}")

    def unpublished(self, event: Unpublished) -> None:
        """S7, S8: a refused frame is not stored; an answer is forgotten only with its frame.

        Raises:
            Violation: it is stored, or nothing explains the answer.
        """
        if event.error_code == SequenceGap.code:
            raise Violation("S8", f"a producer that left none is shut out by a gap: {event}")
        if event.error_code == SequenceTooOld.code:
            if _storage_topic(event.stream) not in self._hurt:
                raise Violation("S7", f"nothing was lost, and yet nobody knows: {event}")
        elif event.sequence in self._sent[event.stream][event.producer].stored:
            raise Violation("S7", f"refused, and yet stored: {event}")

    def damaged(self, event: Damaged) -> None:
        """The disk lost the records there."""
        for sent, sequence, place in self._taken(event):
            sent.damaged[sequence] = place

    def lost(self, event: Lost) -> None:
        """S7: a machine loses only frames that were as durable as it.

        Raises:
            Violation: it took more.
        """
        for sent, sequence, _ in self._taken(event):
            if self._durability[event.stream] != "os":
                raise Violation("S7", f"sequence {sequence} was durable: {event}")
            sent.damaged.pop(sequence, None)

    def _taken(self, event: Damaged | Lost) -> list[tuple[_Sent, int, Place]]:
        """Remove the frames at these offsets; returns their producers."""
        stream, start, end = event.stream, event.start, event.end
        self.ends[stream] = max(self.end(stream), end)
        self.holes[stream].append((start, end))
        self._hurt.add(_storage_topic(stream))
        taken: list[tuple[_Sent, int, Place]] = []
        for sent in self._sent[stream].values():
            for sequence, (base, records) in list(sent.stored.items()):
                if base < end and start < base + records:
                    taken.append((sent, sequence, sent.stored.pop(sequence)))
                    self._forget_order(stream, base)
            sent.contents = {
                content: sequence
                for content, sequence in sent.contents.items()
                if sequence in sent.stored
            }
            sent.last = max(sent.stored, default=-1)
        return taken

    def _forget_order(self, stream: str, base: int) -> None:
        """A frame no longer exists."""
        for (topic, _, _), sent in self._of_keys.items():
            if topic == _topic(stream):
                sent.places = {
                    content: place
                    for content, place in sent.places.items()
                    if place != (stream, base)
                }
                sent.last = max(sent.places, default=-1)


def _topic(stream: str) -> str:
    return stream.partition("/")[0]


def _storage_topic(stream: str) -> str:
    return stream.rpartition("/")[0]
