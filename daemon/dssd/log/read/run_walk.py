"""Walks over the frames of a run on disk and reads their heads only.

Invariant: a header is given only if its stamp's checksum holds. The rest of a frame is read on
request, except that small frames are read many at a time.
"""

from pathlib import Path

from dss_core.errors import FrameCorrupt, LogUnreadable
from dss_core.frame import HEADER_BYTES, Header, subject_table, subject_table_end, verify_stamp
from dssd.limits import READ_HEAD_BYTES
from dssd.log.read.file_reader import FileReader
from dssd.log.segment.run_index import Run

_AHEAD_BYTES = 16 * READ_HEAD_BYTES
"""How much is read at once if frames are smaller than a head."""


class RunWalk:
    """A position among the frames of one run."""

    def __init__(self, files: FileReader, path: Path, run: Run) -> None:
        self._files = files
        self._path = path
        self._stop = run.position + run.length
        self._next = run.position
        self._held = b""
        self._held_at = run.position
        self._step = READ_HEAD_BYTES
        self._at = run.position
        self.header: Header

    async def next(self) -> bool:
        """Go to the next frame, if there is one.

        Raises:
            FrameCorrupt: no whole header stands there.
        """
        if self._next >= self._stop:
            return False
        self._at = self._next
        index = await self._hold(HEADER_BYTES)
        self.header = verify_stamp(self._held, index)
        self._next = self._at + self.header.frame_bytes
        if self._next > self._stop:
            raise FrameCorrupt(reason="it reaches beyond its run")
        self._step = _AHEAD_BYTES if self.header.frame_bytes < READ_HEAD_BYTES else READ_HEAD_BYTES
        return True

    async def table(self) -> bytes:
        """The subject table of the frame.

        Raises:
            FrameCorrupt: it is longer than the frame.
        """
        index = await self._hold(HEADER_BYTES)
        if subject_table_end(self._held, index, self.header.subjects) is None:
            index = await self._hold(self.header.frame_bytes)
        return subject_table(self._held, index, self.header)

    async def frame(self) -> bytes:
        """The whole frame, its body unchecked.

        Raises:
            FrameCorrupt: the file ends within it.
        """
        index = await self._hold(self.header.frame_bytes)
        return self._held[index : index + self.header.frame_bytes]

    def frame_if_held(self) -> bytes | None:
        """The whole frame if it was read along with its head."""
        index = self._at - self._held_at
        frame = self._held[index : index + self.header.frame_bytes]
        return frame if len(frame) == self.header.frame_bytes else None

    async def _hold(self, size: int) -> int:
        """Hold ``size`` bytes of the frame in memory; returns the index where it starts."""
        index = self._at - self._held_at
        if len(self._held) - index < size:
            wanted = min(max(size, self._step), self._stop - self._at)
            self._held = await self._read(size, wanted)
            self._held_at = self._at
            index = 0
            if len(self._held) < size:
                raise FrameCorrupt(reason="the file ends within it")
        return index

    async def _read(self, size: int, wanted: int) -> bytes:
        """Read ``wanted`` bytes; only ``size`` of them if the rest cannot be read."""
        try:
            return await self._files.read(self._path, self._at, wanted)
        except LogUnreadable:
            if wanted == size:
                raise
            return await self._files.read(self._path, self._at, size)
