"""The last sequences of one producer in one stream, and their encoding in a snapshot.

The answers are kept packed as on disk, because hundreds of thousands of producers are known at a
time, and a start reads all of them. Invariant: the answers are those of consecutive sequences, the
last one's last, and at most `WINDOW`.
"""

import struct
from typing import NamedTuple

from dss_core.limits import PRODUCER_WINDOW_SEQUENCES as WINDOW
from dssd.log.producer_room import Key, OwnerShare

_ENTRY = struct.Struct("<H16sqQQB")
"""partition, producer, last sequence, last append time, owner, answers; the highest bit says in
doubt"""
_ENTRY_WITHOUT_OWNER = struct.Struct("<H16sqQB")
_IN_DOUBT = 0x80
_ANSWER = struct.Struct("<QIQ")
_ANSWERS_BYTES_MAX = WINDOW * _ANSWER.size


class FirstAnswer(NamedTuple):
    """Where a frame was stored: the answer to its first append and to each repeat."""

    base_offset: int
    records: int
    append_time_us: int


Entry = tuple[int, bytes, int, int, int, bool, bytes]
"""Of a snapshot: partition, producer, last sequence, last append time, owner, whether in doubt, and
the packed answers."""


class Recent:
    """The remembered sequences of one producer in one stream."""

    __slots__ = (
        "_answers",
        "changed",
        "doubt_before",
        "in_doubt",
        "is_complete",
        "last",
        "share",
        "time_us",
        "used_us",
    )

    def __init__(
        self,
        share: OwnerShare,
        last: int,
        time_us: int,
        in_doubt: bool = False,
        answers: bytes = b"",
    ) -> None:
        self.share = share
        self.last = last
        self.time_us = time_us
        """Its last append, by the wall clock."""
        self.used_us = 0
        """The same on the monotonic clock; for appends before the start, the time of the start."""
        self.in_doubt = in_doubt
        self.doubt_before: int | None = None
        """The last sequence before the frame that ended the doubt."""
        self.is_complete = False
        """Whether the answers are those of all its frames."""
        self.changed = False
        """Whether it is on the list of changed producers."""
        self._answers = answers

    def answer(self, behind: int) -> FirstAnswer | None:
        """The answer to the sequence so far behind the last one, if it is known."""
        at = len(self._answers) - (behind + 1) * _ANSWER.size
        return FirstAnswer(*_ANSWER.unpack_from(self._answers, at)) if at >= 0 else None

    def answers(self) -> list[FirstAnswer]:
        """The known answers, the oldest first."""
        return [FirstAnswer(*one) for one in _ANSWER.iter_unpack(self._answers)]

    def add(self, answer: FirstAnswer) -> None:
        """The answer to the next sequence."""
        answers = self._answers + _ANSWER.pack(*answer)
        self.is_complete = self.is_complete and len(answers) <= _ANSWERS_BYTES_MAX
        self._answers = answers[-_ANSWERS_BYTES_MAX:]

    def keep_newest(self, count: int) -> None:
        """Forget the older answers."""
        self.is_complete = False
        self._answers = self._answers[-count * _ANSWER.size :] if count else b""

    def drop_newest(self) -> None:
        """Forget the newest answer, if any is known."""
        self._answers = self._answers[: -_ANSWER.size]

    def has_stored_nothing(self) -> bool:
        """Whether all its frames were taken back."""
        return self.is_complete and not self._answers

    def may_come_yet(self, sequence: int) -> bool:
        """Whether the sequence lies before the frame that ended the doubt, and was not stored."""
        before = self.doubt_before
        return before is not None and not self._answers and before < sequence <= self.last

    def knows(self, answer: FirstAnswer) -> bool:
        """Whether a frame with this answer was stored no later than the last one."""
        newest = self.answer(0)
        if newest is not None:
            return answer.base_offset <= newest.base_offset
        return answer.append_time_us <= self.time_us

    def learn(self, last: int, time_us: int, in_doubt: bool, answers: bytes) -> None:
        """Take over the state of an entry."""
        self.is_complete = False
        self.last, self.time_us = last, time_us
        self.in_doubt, self._answers = in_doubt, answers

    def encoded(self, key: Key) -> bytes:
        """The entry in a snapshot."""
        said = len(self._answers) // _ANSWER.size | (_IN_DOUBT if self.in_doubt else 0)
        return _ENTRY.pack(*key, self.last, self.time_us, self.share.owner, said) + self._answers


def without_answers(key: Key, time_us: int) -> bytes:
    """An entry that has only the time."""
    return _ENTRY.pack(*key, 0, time_us, 0, 0)


def entry_at(snapshot: bytes, at: int) -> tuple[Entry, int]:
    """The entry at a position of a snapshot, and where it ends."""
    partition, producer_id, last, time_us, owner, said = _ENTRY.unpack_from(snapshot, at)
    at += _ENTRY.size
    end = at + (said & ~_IN_DOUBT) * _ANSWER.size
    in_doubt = said >= _IN_DOUBT
    return (partition, producer_id, last, time_us, owner, in_doubt, snapshot[at:end]), end


def entry_without_owner_at(snapshot: bytes, at: int) -> tuple[Entry, int]:
    """The same in a snapshot of the versions before owners were noted."""
    partition, producer_id, last, time_us, said = _ENTRY_WITHOUT_OWNER.unpack_from(snapshot, at)
    at += _ENTRY_WITHOUT_OWNER.size
    end = at + (said & ~_IN_DOUBT) * _ANSWER.size
    in_doubt = said >= _IN_DOUBT
    return (partition, producer_id, last, time_us, 0, in_doubt, snapshot[at:end]), end
