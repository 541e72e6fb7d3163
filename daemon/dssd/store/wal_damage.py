"""Tells a damaged write-ahead log from one whose last commit is unfinished.

SQLite ends a log at the first bad frame and drops whatever follows. After a loss of power that is
right: at most one commit was not synced, and only its frames can be bad. But if another commit
*follows* the one with the bad frame, the first one had been synced. Then SQLite would silently drop
acknowledged commits.

::

    header                            frame, and its page
    magic version page_bytes seq      page commit salt salt sum sum | page
    salt salt sum sum                 (each u32, big endian)

The sums of a frame cover its first two fields and its page, and continue the sums of the frame
before. So a frame can be checked against its predecessor even if earlier frames are bad. Frames of
an earlier round of the log have other salts.

Invariant: pure; nothing that a loss of power can leave counts as damage. Bad bytes in the very last
commit cannot be told from an unfinished commit.
"""

import struct
from typing import NamedTuple

_HEADER = struct.Struct(">8I")
_FRAME = struct.Struct(">6I")
_MAGIC = 0x377F0682
"""Its last bit says that sums are over words in big endian."""
_SECTOR_BYTES = 512
"""What a disk writes whole, at least."""
_PAGE_BYTES_DEFAULT = 4_096
_PAGE_BYTES = frozenset(1 << bits for bits in range(9, 17))
_SUM_MASK = 0xFFFFFFFF

Sums = tuple[int, int]


class _Frame(NamedTuple):
    number: int
    """The number of the frame, from 0."""
    commits: bool
    salts: tuple[int, int]
    sums: Sums
    is_header_in_one_sector: bool


def damage_in(log: bytes) -> str | None:
    """The damage for which SQLite would drop commits; None if there is none."""
    if len(log) < _HEADER.size:
        return None
    found = _Log(log)
    return found.damage() if found.is_header_whole else found.damage_under_bad_header()


class _Log:
    def __init__(self, log: bytes) -> None:
        magic, _, page_bytes, _, *rest = _HEADER.unpack_from(log)
        order = ">" if magic & 1 else "<"
        self._log = log
        self._page_bytes = page_bytes if page_bytes in _PAGE_BYTES else _PAGE_BYTES_DEFAULT
        self._words = struct.Struct(f"{order}{self._page_bytes // 4}I")
        self._two_words = struct.Struct(f"{order}2I")
        self._frames = (len(log) - _HEADER.size) // (_FRAME.size + self._page_bytes)
        self._salts = (rest[0], rest[1])
        self._sums = (rest[2], rest[3])
        words = struct.unpack_from(f"{order}6I", log)
        self.is_header_whole = magic | 1 == _MAGIC | 1 and _summed(words, (0, 0)) == self._sums

    def damage(self) -> str | None:
        """Find the first bad frame, then a commit after the one that the frame belongs to."""
        first, before = 0, self._sums
        while first < self._frames and self._holds(first, before):
            before = self._frame(first).sums
            first += 1
        for number in range(first, self._frames - 1):
            frame, after = self._frame(number), self._frame(number + 1)
            if not frame.commits or {frame.salts, after.salts} != {self._salts}:
                continue
            # A header over two sectors may be half of an earlier round, with its commit field.
            if not (frame.is_header_in_one_sector or self._follows(frame)):
                continue
            sums = self._summed(number, before) if number == first else frame.sums
            if after.sums in (self._summed(number + 1, frame.sums), self._summed(number + 1, sums)):
                return f"frame {first + 1} is bad, and commits follow after frame {number + 1}"
        return None

    def damage_under_bad_header(self) -> str | None:
        """Find whole frames: the log's header was synced before the first frame was written."""
        for number in range(1, self._frames):
            frame = self._frame(number)
            same_round = any(frame.salts) and frame.salts == self._frame(number - 1).salts
            if same_round and self._follows(frame):
                return f"its header is bad, and frame {number + 1} is whole"
        return None

    def _frame(self, number: int) -> _Frame:
        at = self._position(number)
        _, commit, salt, other_salt, one, two = _FRAME.unpack_from(self._log, at)
        in_one = at // _SECTOR_BYTES == (at + _FRAME.size - 1) // _SECTOR_BYTES
        return _Frame(number, commit != 0, (salt, other_salt), (one, two), in_one)

    def _holds(self, number: int, before: Sums) -> bool:
        frame = self._frame(number)
        return frame.salts == self._salts and frame.sums == self._summed(number, before)

    def _follows(self, frame: _Frame) -> bool:
        """Whether a frame's sums are right, given the stored sums of the frame before."""
        before = self._sums if frame.number == 0 else self._frame(frame.number - 1).sums
        return frame.sums == self._summed(frame.number, before)

    def _summed(self, number: int, before: Sums) -> Sums:
        """The sums that a frame should have."""
        at = self._position(number)
        sums = _summed(self._two_words.unpack_from(self._log, at), before)
        return _summed(self._words.unpack_from(self._log, at + _FRAME.size), sums)

    def _position(self, number: int) -> int:
        return _HEADER.size + number * (_FRAME.size + self._page_bytes)


def _summed(words: tuple[int, ...], sums: Sums) -> Sums:
    one, two = sums
    pairs = iter(words)
    for first, second in zip(pairs, pairs, strict=True):
        one = (one + first + two) & _SUM_MASK
        two = (two + second + one) & _SUM_MASK
    return one, two
