"""What each producer sent last to each stream, so that nothing is stored twice.

A frame names its producer and its sequence, which counts that producer's frames in that stream.
Of each (partition, producer) the last `WINDOW` sequences are kept with their answers::

                 too old │ answered again      │ stored │ a gap
    sequence  ...  4   5 │ 6   7   8   9   10  │   11   │ 12  13  ...
                         └── the last answers ─┘

An unknown producer may start at any sequence: a producer is forgotten `PRODUCER_FORGOTTEN_US` after
its last append, and must be able to continue afterwards. A new producer starts at 0, and its random
id cannot be that of another one.

After a crash, acknowledged frames may be gone: they are damaged, or they were of durability ``os``
and lost with the power. Their producers are unknown, so each producer is *in doubt*: its next frame
may be of any higher sequence, and the producer continues from there. A gap error would repeat for
ever. A frame that is known to be gone is not answered as stored, and neither is an older one.

Invariant: a sequence is answered with what was stored first, or not at all. Pure: no clock, no
file; the same frames in the same order give the same state. Frames whose producer is
`NO_PRODUCER` are not tracked. All states that share a `ProducerCount` together track at most
`PRODUCERS_MAX` producers.
"""

import struct
import threading
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import xxhash

from dss_core.errors import Overloaded, SequenceGap, SequenceTooOld
from dss_core.ids import StreamId
from dss_core.limits import PRODUCER_WINDOW_SEQUENCES as WINDOW
from dssd.limits import PRODUCER_FORGOTTEN_US, PRODUCERS_MAX

NO_PRODUCER = bytes(16)
SEQUENCE_MAX = (1 << 62) - 1
"""Where a producer may start; far enough below 2^63 that a snapshot can hold what follows."""

_HEAD = struct.Struct("<8sIIIQQQ")
"""magic, version, window, storage topic, segment, position, entries"""
_NEWEST = struct.Struct("<Q")
"""append time of the newest frame; follows the head, from version 2 on"""
_ENTRY = struct.Struct("<H16sqQB")
"""partition, producer, last sequence, last append time, answers; the highest bit says in doubt"""
_IN_DOUBT = 0x80
_ANSWER = struct.Struct("<QIQ")
_CHECKSUM = struct.Struct("<Q")
_MAGIC = b"DSSPROD1"
_VERSION = 2
_VERSIONS_READ = (1, _VERSION)


class FirstAnswer(NamedTuple):
    """Where a frame was stored: the answer to its first append and to each repeat."""

    base_offset: int
    records: int
    append_time_us: int


class SnapshotPosition(NamedTuple):
    """The position in the log up to which a snapshot knows the frames."""

    storage_topic_id: int
    segment_id: int
    position: int


class BadSnapshot(Exception):
    """The snapshot is damaged or of another version; the frames have to be read instead."""


class _Recent:
    """The last sequences of one producer in one stream."""

    __slots__ = ("answers", "changed", "in_doubt", "last", "time_us")

    def __init__(self, last: int, time_us: int) -> None:
        self.last = last
        self.time_us = time_us
        self.in_doubt = False
        self.changed = False
        """Whether it is on the list of changed producers."""
        self.answers: deque[FirstAnswer] = deque(maxlen=WINDOW)

    def knows(self, answer: FirstAnswer) -> bool:
        """Whether a frame with this answer was stored no later than the last one."""
        if self.answers:
            return answer.base_offset <= self.answers[-1].base_offset
        return answer.append_time_us <= self.time_us


class ProducerCount:
    """How many (partition, producer) are known to all storage topics of a log together."""

    __slots__ = ("_lock", "count")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.count = 0

    def add(self, more: int) -> None:
        """Add to the count; ``more`` may be negative. Safe on any thread."""
        with self._lock:
            self.count += more


class Producers:
    """The state of one storage topic."""

    __slots__ = ("_changed", "_followed", "_recent", "_storage_topic_id", "newest_us")

    def __init__(self, storage_topic_id: int) -> None:
        self._storage_topic_id = storage_topic_id
        self.newest_us = 0
        """Append time of the newest frame that a snapshot covers; later frames are no older.

        The caller of `encode` sets it, because frames without a producer are not tracked."""
        self._followed = ProducerCount()
        self._recent: dict[tuple[int, bytes], _Recent] = {}
        self._changed: list[tuple[int, bytes]] = []

    def __len__(self) -> int:
        """How many (partition, producer) are known."""
        return len(self._recent)

    def count_in(self, followed: ProducerCount) -> None:
        """Share the bound of a count with other states from now on."""
        self._followed.add(-len(self._recent))
        self._followed = followed
        followed.add(len(self._recent))

    def _follow(self, partition: int, producer_id: bytes, last: int, time_us: int) -> _Recent:
        recent = self._recent[partition, producer_id] = _Recent(last, time_us)
        self._followed.add(1)
        return recent

    def answer(self, partition: int, producer_id: bytes, sequence: int) -> FirstAnswer | None:
        """The first answer of a repeated frame, or None for one that is to be stored.

        Raises:
            SequenceGap: frames before this one are missing.
            SequenceTooOld: it was answered once, but the answer is no longer known.
            Overloaded: it is a new producer, and no more can be tracked.
        """
        if producer_id == NO_PRODUCER:
            return None
        recent = self._recent.get((partition, producer_id))
        if recent is None:
            self._check_newcomer(partition, sequence)
            return None
        ahead = sequence - recent.last
        if ahead > 1 and recent.in_doubt and sequence <= SEQUENCE_MAX:
            recent.answers.clear()
            recent.last = sequence - 1
            ahead = 1
        if ahead == 1:
            recent.in_doubt = False
            return None
        if ahead > 1:
            stream = self._stream(partition)
            raise SequenceGap(given=sequence, expected_after=recent.last, stream=stream)
        return self.first_answer(partition, producer_id, sequence)

    def first_answer(self, partition: int, producer_id: bytes, sequence: int) -> FirstAnswer | None:
        """The first answer of a repeated frame, or None where no such frame is known.

        Raises:
            SequenceTooOld: it was answered once, but the answer is no longer known.
        """
        recent = self._recent.get((partition, producer_id))
        if recent is None or sequence > recent.last:
            return None
        behind = recent.last - sequence
        if behind < len(recent.answers):
            return recent.answers[-1 - behind]
        raise SequenceTooOld(given=sequence, stream=self._stream(partition))

    def _check_newcomer(self, partition: int, sequence: int) -> None:
        if sequence > SEQUENCE_MAX:
            stream = self._stream(partition)
            raise SequenceGap(given=sequence, expected_after=SEQUENCE_MAX, stream=stream)
        if self._followed.count >= PRODUCERS_MAX:
            raise Overloaded(what="The number of producers", limit=PRODUCERS_MAX)

    def _stream(self, partition: int) -> StreamId:
        return StreamId(self._storage_topic_id, partition)

    def stored(
        self, partition: int, producer_id: bytes, sequence: int, answer: FirstAnswer
    ) -> None:
        """Remember a frame. A frame that is known already changes nothing."""
        if producer_id == NO_PRODUCER:
            return
        recent = self._recent.get((partition, producer_id))
        if recent is None:
            recent = self._follow(partition, producer_id, sequence - 1, answer.append_time_us)
        if not recent.changed:
            # Also by a known frame: the reader of these changes may not know it.
            recent.changed = True
            self._changed.append((partition, producer_id))
        if sequence <= recent.last:
            if recent.knows(answer):
                return
            # It was forgotten in between, and sent its old sequences again.
            recent.answers.clear()
        elif sequence != recent.last + 1:
            # Frames between were lost to damage or retention: their answers are unknown, and
            # positions in the window must stand for consecutive sequences.
            recent.answers.clear()
        recent.last = sequence
        recent.time_us = answer.append_time_us
        recent.answers.append(answer)

    def lost(self, partition: int, producer_id: bytes, sequence: int, time_us: int) -> None:
        """A stored frame is damaged: a repeat of it is too old, and is not stored again."""
        if producer_id == NO_PRODUCER:
            return
        recent = self._recent.get((partition, producer_id))
        if recent is None:
            recent = self._follow(partition, producer_id, sequence, time_us)
        if not recent.changed:
            recent.changed = True
            self._changed.append((partition, producer_id))
        recent.last = max(recent.last, sequence)
        recent.time_us = max(recent.time_us, time_us)
        kept = recent.last - sequence
        while len(recent.answers) > kept:
            recent.answers.popleft()

    def doubt(self) -> None:
        """Put all producers in doubt: frames of any of them may be gone."""
        for recent in self._recent.values():
            recent.in_doubt = True

    def forget_gone(self, is_there: Callable[[int, int], bool]) -> None:
        """Forget the answers for frames that are gone, and all older answers.

        ``is_there`` is asked with the partition and the first offset of a frame.
        """
        for (partition, _), recent in self._recent.items():
            for newer, answer in enumerate(reversed(recent.answers)):
                if not is_there(partition, answer.base_offset):
                    while len(recent.answers) > newer:
                        recent.answers.popleft()
                    break

    def taken_back(self, partition: int, producer_id: bytes, sequence: int) -> None:
        """Forget the last frame of a producer: it was not stored after all."""
        if producer_id == NO_PRODUCER:
            return
        recent = self._recent[partition, producer_id]
        assert recent.last == sequence
        if recent.answers:
            recent.answers.pop()
        # Kept even where no answer is left: a producer that became unknown could repeat an
        # older sequence and have it stored twice.
        recent.last = sequence - 1

    def forget_before(self, time_us: int) -> None:
        """Forget producers whose last append is older."""
        old = [key for key, recent in self._recent.items() if recent.time_us < time_us]
        for key in old:
            del self._recent[key]
        self._followed.add(-len(old))

    def encode(self, covered: SnapshotPosition) -> bytes:
        """The state as a snapshot with its checksum."""
        body = b"".join(_encoded(key, recent) for key, recent in self._recent.items())
        head = _HEAD.pack(_MAGIC, _VERSION, WINDOW, *covered, len(self._recent))
        head += _NEWEST.pack(self.newest_us)
        return head + body + _CHECKSUM.pack(xxhash.xxh3_64_intdigest(head + body))

    def take_changes(self) -> bytes:
        """The state of all producers that sent a frame since the last call.

        `apply` takes it in. Changes may be joined end to end, and then cover the frames of all.
        """
        keys, self._changed = self._changed, []
        changes: list[bytes] = []
        for key in keys:
            recent = self._recent.get(key)
            if recent is not None:
                recent.changed = False
                changes.append(_encoded(key, recent))
        return b"".join(changes)

    def apply(self, changes: bytes) -> None:
        """Replace the state of the producers in ``changes``, which `take_changes` gave."""
        at = 0
        while at < len(changes):
            at = self._decode_entry(changes, at)

    @classmethod
    def decode(cls, snapshot: bytes) -> tuple["Producers", SnapshotPosition]:
        """Read a snapshot.

        Raises:
            BadSnapshot: damaged, or of another version.
        """
        end = len(snapshot) - _CHECKSUM.size
        if end < _HEAD.size:
            raise BadSnapshot("too short")
        (checksum,) = _CHECKSUM.unpack_from(snapshot, end)
        if xxhash.xxh3_64_intdigest(snapshot[:end]) != checksum:
            raise BadSnapshot("its checksum does not match")
        magic, version, window, topic, segment, position, entries = _HEAD.unpack_from(snapshot)
        if (magic, window) != (_MAGIC, WINDOW) or version not in _VERSIONS_READ:
            raise BadSnapshot("of another version")
        producers = cls(topic)
        at = _HEAD.size
        if version == _VERSION:
            (producers.newest_us,) = _NEWEST.unpack_from(snapshot, at)
            at += _NEWEST.size
        for _ in range(entries):
            at = producers._decode_entry(snapshot, at)
        return producers, SnapshotPosition(topic, segment, position)

    def _decode_entry(self, snapshot: bytes, at: int) -> int:
        partition, producer_id, last, time_us, answers = _ENTRY.unpack_from(snapshot, at)
        at += _ENTRY.size
        recent = self._recent.get((partition, producer_id))
        if recent is None:
            recent = self._follow(partition, producer_id, last, time_us)
        recent.last, recent.time_us = last, time_us
        recent.in_doubt = bool(answers & _IN_DOUBT)
        recent.answers.clear()
        for _ in range(answers & ~_IN_DOUBT):
            recent.answers.append(FirstAnswer(*_ANSWER.unpack_from(snapshot, at)))
            at += _ANSWER.size
        return at


def _encoded(key: tuple[int, bytes], recent: _Recent) -> bytes:
    answers = len(recent.answers) | (_IN_DOUBT if recent.in_doubt else 0)
    entry = _ENTRY.pack(*key, recent.last, recent.time_us, answers)
    return entry + b"".join(_ANSWER.pack(*answer) for answer in recent.answers)


def forgotten_before(now_us: int) -> int:
    """The time before which a last append no longer counts."""
    return now_us - PRODUCER_FORGOTTEN_US
