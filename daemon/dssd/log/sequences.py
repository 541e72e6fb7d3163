"""The last sequences of each producer in each stream, so that no frame is stored twice.

A frame names its producer and its sequence, which counts that producer's frames in that stream.
Of each (partition, producer) the last `WINDOW` sequences are kept with their answers::

                 too old │ answered again      │ stored │ a gap
    sequence  ...  4   5 │ 6   7   8   9   10  │   11   │ 12  13  ...
                         └── the last answers ─┘

A producer is forgotten once a daemon saw it silent for `PRODUCER_FORGOTTEN_US`, or earlier to make
room (`producer_room`). A step of the wall clock is no silence: silence is measured on the monotonic
clock, and a start counts only silence that both its clock and the newest frame show. A frame of a
forgotten producer may have been stored before, so it is refused: its id says when it began
(`dss_core.producer_ids`), and that is no later than `forgotten_us`, the newest begin time of all
forgotten producers. A producer that began later was not forgotten. It may start at any sequence,
because all its earlier frames may be gone. If an id has no begin time, only a frame of sequence 0
counts as that of a new producer.

After a crash, acknowledged frames may be gone: they are damaged, or they were of durability ``os``
and lost with the power. Their producers are unknown, so each producer is *in doubt*: its next frame
may be of any higher sequence, and the producer continues from there. A gap error would repeat for
ever. If that frame was not stored after all, earlier ones may still come. A frame that is known to
be gone is not answered as stored, and neither is an older one.

If the first frame of an unknown producer found no room, the producer stays unknown, but none of its
later frames may begin in place of that one (`refused_firsts`): its repeat would be too old then,
although it is certain that it was not stored. Earlier frames may still come.

Invariant: a sequence is answered with what was stored first, or not at all. Pure: no clock, no
file; the same frames in the same order give the same state. Frames whose producer is
`NO_PRODUCER` are not tracked.
"""

import gc
import struct
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from heapq import nsmallest
from typing import NamedTuple

import xxhash

from dss_core.errors import ProducerForgotten, SequenceGap, SequenceTooOld
from dss_core.ids import StreamId
from dss_core.limits import PRODUCER_WINDOW_SEQUENCES as WINDOW
from dss_core.producer_ids import NO_PRODUCER, began_us
from dssd.log.limits import PRODUCER_FORGOTTEN_US
from dssd.log.producer_room import NOBODY, Key, OwnerShare, ProducerRoom
from dssd.log.recent_sequences import (
    Entry,
    FirstAnswer,
    Recent,
    entry_at,
    entry_without_owner_at,
    without_answers,
)

PRODUCERS_LISTED_MAX = 4_096
"""How many producers of a share are sorted at once; finding them takes one scan of the topic's
producers."""


SEQUENCE_MAX = (1 << 62) - 1
"""Where a producer may start; far enough below 2^63 that a snapshot can hold what follows."""

_HEAD = struct.Struct("<8sIIIQQQ")
"""magic, version, window, storage topic, segment, position, entries"""
_NEWEST = struct.Struct("<Q")
"""append time of the newest frame; follows the head, from version 2 on"""
_CHECKSUM = struct.Struct("<Q")
_MAGIC = b"DSSPROD1"
_VERSION = 3
_WITHOUT_OWNERS = 2
_VERSIONS_READ = (1, _WITHOUT_OWNERS, _VERSION)


class SnapshotPosition(NamedTuple):
    """The position in the log up to which a snapshot knows the frames."""

    storage_topic_id: int
    segment_id: int
    position: int


class BadSnapshot(Exception):
    """The snapshot is damaged or of another version; the frames have to be read instead."""


class Producers:
    """The state of one storage topic."""

    __slots__ = (
        "_changed",
        "_recent",
        "_room",
        "_shares",
        "_storage_topic_id",
        "forgotten_us",
        "newest_us",
        "now_us",
    )

    def __init__(self, storage_topic_id: int) -> None:
        self._storage_topic_id = storage_topic_id
        self.newest_us = 0
        """Append time of the newest frame that a snapshot covers; later frames are no older.

        The caller of `encode` sets it, because frames without a producer are not tracked."""
        self.now_us = 0
        """The monotonic clock, as the caller of `stored` and `make_room` has set it."""
        self.forgotten_us = 0
        """The newest beginning of all forgotten producers; 0: none was forgotten."""
        self._room = ProducerRoom()
        self._shares: dict[int, OwnerShare] = {}
        """The shares, by owner."""
        self._recent: dict[Key, Recent] = {}
        self._changed: list[Key] = []

    def __len__(self) -> int:
        """How many (partition, producer) are known."""
        return len(self._recent)

    def count_in(self, room: ProducerRoom) -> None:
        """Share the room with other states from now on."""
        for recent in self._recent.values():
            self._room.take(recent.share)
        for recent in self._recent.values():
            room.add(recent.share)
            recent.used_us = room.started_us
        self._room = room

    def _follow(self, key: Key, last: int, time_us: int, owner: int = NOBODY) -> Recent:
        share = self._share_of(owner)
        recent = self._recent[key] = Recent(share, last, time_us)
        self._room.add(share)
        return recent

    def _share_of(self, owner: int) -> OwnerShare:
        share = self._shares.get(owner)
        if share is None:
            share = self._shares[owner] = OwnerShare(owner, self)
        return share

    def _drop(self, key: Key) -> None:
        recent = self._recent.pop(key)
        self._room.take(recent.share)
        if not recent.share.count:
            del self._shares[recent.share.owner]

    def _forget(self, key: Key) -> None:
        self._drop(key)
        self.forgotten_us = max(self.forgotten_us, began_us(key[1]) or 1)

    def answer(self, partition: int, producer_id: bytes, sequence: int) -> FirstAnswer | None:
        """The first answer of a repeated frame, or None for one that is to be stored.

        Raises:
            SequenceGap: frames before this one are missing.
            SequenceTooOld: it was answered once, but the answer is no longer known.
            ProducerForgotten: it is unknown whether the frame was stored.
        """
        recent = self._known(partition, producer_id, sequence)
        if recent is None:
            self._check_first(partition, producer_id, sequence)
            return None
        ahead = sequence - recent.last
        if ahead > 1 and recent.in_doubt and sequence <= SEQUENCE_MAX:
            recent.keep_newest(0)
            recent.doubt_before, recent.last = recent.last, sequence - 1
            ahead = 1
        elif recent.may_come_yet(sequence):
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
            ProducerForgotten: it is unknown whether the frame was stored.
        """
        recent = self._known(partition, producer_id, sequence)
        if recent is None:
            return None
        behind = recent.last - sequence
        answer = recent.answer(behind) if behind >= 0 else None
        if behind >= 0 and answer is None:
            raise SequenceTooOld(given=sequence, stream=self._stream(partition))
        return answer

    def _known(self, partition: int, producer_id: bytes, sequence: int) -> Recent | None:
        if producer_id == NO_PRODUCER:
            return None
        recent = self._recent.get((partition, producer_id))
        if recent is None:
            self._check_unknown(partition, producer_id, sequence)
        return recent

    def _check_unknown(self, partition: int, producer_id: bytes, sequence: int) -> None:
        if sequence > SEQUENCE_MAX:
            stream = self._stream(partition)
            raise SequenceGap(given=sequence, expected_after=SEQUENCE_MAX, stream=stream)
        began = began_us(producer_id)
        is_new = sequence == 0 if began is None else began > self.forgotten_us
        if self.forgotten_us and not is_new:
            raise ProducerForgotten(stream=self._stream(partition))

    def _check_first(self, partition: int, producer_id: bytes, sequence: int) -> None:
        first = self._room.refused.first((self._storage_topic_id, partition, producer_id))
        if first is not None and sequence > first:
            stream = self._stream(partition)
            raise SequenceGap(given=sequence, expected_after=first - 1, stream=stream)

    def make_room(self, partition: int, producer_id: bytes, owner: int) -> None:
        """Make room to remember the producer of a frame that is about to be stored.

        Raises:
            TooManyProducers: it is new, and no more can be remembered.
        """
        if producer_id != NO_PRODUCER and (partition, producer_id) not in self._recent:
            self._room.make(self._share_of(owner), self.now_us)

    def silent_longest(self, share: OwnerShare) -> deque[tuple[int, Key]]:
        """The producers of a share that were silent for longest, in order, each with its last
        append."""
        own = ((key, one) for key, one in self._recent.items() if one.share is share)
        listed = ((one.used_us, one.time_us, key) for key, one in own)
        oldest = nsmallest(PRODUCERS_LISTED_MAX, listed)
        return deque((used_us, key) for used_us, _, key in oldest)

    def forget_if_silent(self, key: Key, since_us: int) -> bool:
        """Forget one, if it has not appended since then; returns whether it did."""
        recent = self._recent.get(key)
        if recent is None or recent.used_us != since_us:
            return False
        self._forget(key)
        return True

    def _stream(self, partition: int) -> StreamId:
        return StreamId(self._storage_topic_id, partition)

    def stored(
        self,
        partition: int,
        producer_id: bytes,
        sequence: int,
        answer: FirstAnswer,
        owner: int = NOBODY,
    ) -> None:
        """Remember a frame. A frame that is known already changes nothing."""
        if producer_id == NO_PRODUCER:
            return
        key = partition, producer_id
        recent = self._recent.get(key)
        if recent is None:
            recent = self._follow(key, sequence - 1, answer.append_time_us, owner)
            recent.is_complete = True
            self._room.refused.forget((self._storage_topic_id, *key))
        elif owner != recent.share.owner == NOBODY:
            self._give(recent, owner)
        if not recent.changed:
            # For a known frame too, because the reader of these changes may not know it.
            recent.changed = True
            self._changed.append(key)
        if sequence <= recent.last:
            if recent.knows(answer):
                return
            # It was forgotten in between, and sent its old sequences again.
            recent.keep_newest(0)
        elif sequence != recent.last + 1:
            # Frames between were lost to damage or retention: their answers are unknown, and
            # positions in the window must stand for consecutive sequences.
            recent.keep_newest(0)
        recent.last = sequence
        recent.time_us = answer.append_time_us
        recent.used_us = self.now_us
        recent.add(answer)

    def _give(self, recent: Recent, owner: int) -> None:
        """Move a producer to its owner's share, once the owner is known."""
        self._room.take(recent.share)
        if not recent.share.count:
            del self._shares[recent.share.owner]
        recent.share = self._share_of(owner)
        self._room.add(recent.share)

    def lost(self, partition: int, producer_id: bytes, sequence: int, time_us: int) -> None:
        """A stored frame is damaged: a repeat of it is too old, and is not stored again."""
        if producer_id == NO_PRODUCER:
            return
        key = partition, producer_id
        recent = self._recent.get(key)
        if recent is None:
            recent = self._follow(key, sequence, time_us)
        if not recent.changed:
            recent.changed = True
            self._changed.append(key)
        recent.last = max(recent.last, sequence)
        recent.time_us = max(recent.time_us, time_us)
        recent.keep_newest(recent.last - sequence)

    def doubt(self) -> None:
        """Put all producers in doubt: frames of any of them may be gone."""
        for recent in self._recent.values():
            recent.in_doubt = True

    def forget_gone(self, is_there: Callable[[int, int], bool]) -> None:
        """Forget the answers for frames that are gone, and all older answers.

        ``is_there`` is asked with the partition and the first offset of a frame.
        """
        for (partition, _), recent in self._recent.items():
            for newer, answer in enumerate(reversed(recent.answers())):
                if not is_there(partition, answer.base_offset):
                    recent.keep_newest(newer)
                    break

    def refused(self, partition: int, producer_id: bytes, sequence: int) -> None:
        """There was no room for a frame that might be stored: what follows it has to wait."""
        if producer_id != NO_PRODUCER and (partition, producer_id) not in self._recent:
            self._room.refused.note((self._storage_topic_id, partition, producer_id), sequence)

    def taken_back(self, partition: int, producer_id: bytes, sequence: int) -> None:
        """Forget the last frame of a producer: it was not stored after all."""
        if producer_id == NO_PRODUCER:
            return
        key = partition, producer_id
        recent = self._recent[key]
        assert recent.last == sequence
        recent.drop_newest()
        # Keep a producer that has stored anything, even without an answer: as an unknown producer
        # it could repeat an older sequence and have it stored twice. Forget one that has stored
        # nothing: its next frame may have a lower sequence, because earlier frames were refused
        # over an older call.
        recent.last = sequence - 1
        if recent.has_stored_nothing():
            self._drop(key)
            self.refused(partition, producer_id, sequence)

    def forget_at_start(self, wall_us: int) -> None:
        """Forget producers that were silent for long, both by the clock and by the newest frame."""
        newest_us = max((one.time_us for one in self._recent.values()), default=0)
        self.forget_before(min(wall_us, newest_us) - PRODUCER_FORGOTTEN_US)

    def forget_before(self, time_us: int) -> None:
        """Forget producers whose last append is older, by the times of the frames."""
        for key in [key for key, one in self._recent.items() if one.time_us < time_us]:
            self._forget(key)

    def forget_silent(self, now_us: int) -> None:
        """Forget producers that were silent for long; the time is monotonic."""
        before_us = now_us - PRODUCER_FORGOTTEN_US
        for key in [key for key, one in self._recent.items() if one.used_us < before_us]:
            self._forget(key)

    def encode(self, covered: SnapshotPosition) -> bytes:
        """The state as a snapshot with its checksum."""
        entries = [recent.encoded(key) for key, recent in self._recent.items()]
        body = self._forgotten() + b"".join(entries)
        head = _HEAD.pack(_MAGIC, _VERSION, WINDOW, *covered, len(entries) + 1)
        head += _NEWEST.pack(self.newest_us)
        return head + body + _CHECKSUM.pack(xxhash.xxh3_64_intdigest(head + body))

    def take_changes(self) -> bytes:
        """The state of all producers that sent a frame since the last call.

        `apply` takes it in. Changes may be joined end to end, and then cover the frames of all.
        """
        keys, self._changed = self._changed, []
        changes: list[bytes] = [self._forgotten()] if keys else []
        for key in keys:
            recent = self._recent.get(key)
            if recent is not None:
                recent.changed = False
                changes.append(recent.encoded(key))
        return b"".join(changes)

    def _forgotten(self) -> bytes:
        """An entry with `forgotten_us`, under an id that no producer has."""
        return without_answers((0, NO_PRODUCER), self.forgotten_us)

    def apply(self, changes: bytes) -> None:
        """Replace the state of the producers in ``changes``, which `take_changes` gave."""
        at = 0
        while at < len(changes):
            entry, at = entry_at(changes, at)
            self._learn(entry)

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
        if version >= _WITHOUT_OWNERS:
            (producers.newest_us,) = _NEWEST.unpack_from(snapshot, at)
            at += _NEWEST.size
        read = entry_at if version == _VERSION else entry_without_owner_at
        with _no_collection():
            for _ in range(entries):
                entry, at = read(snapshot, at)
                producers._learn(entry)
        return producers, SnapshotPosition(topic, segment, position)

    def _learn(self, entry: Entry) -> None:
        partition, producer_id, last, time_us, owner, in_doubt, answers = entry
        if producer_id == NO_PRODUCER:
            self.forgotten_us = max(self.forgotten_us, time_us)
            return
        key = partition, producer_id
        recent = self._recent.get(key)
        if recent is not None:
            recent.learn(last, time_us, in_doubt, answers)
            return
        share = self._share_of(owner)
        self._recent[key] = Recent(share, last, time_us, in_doubt, answers)
        self._room.add(share)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Disable garbage collection: none of the many new objects is garbage, and scanning them takes
    half of a start."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
