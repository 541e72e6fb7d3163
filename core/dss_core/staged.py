"""Staged files: what a driver of a bulk job writes, and the daemon takes into its log.

Little endian::

    ┌ head, 64 bytes ──────────────────────────────────────────────────────────────────┐
    │ magic DSSSTAGE │ u32 version │ u32 bytes of the head │ u64 job │ u32 chunk          │
    │ u32 storage topic │ u64 checksum of all before (xxh3-64) │ zeros                    │
    ├ frames, end to end ──────────────────────────────────────────────────────────────┤
    │ as a producer builds them (`dss_core.frame`), not stamped, of no producer: id and     │
    │ sequence are zero; any partitions of the storage topic, in any order                  │
    └──────────────────────────────────────────────────────────────────────────────────┘

The records of a partition get their offsets in the order of the files that a commit names, and in
each file in the order of its frames. So who keeps the order of a key writes its records in that
order.

Invariant: a file under its final name is whole, as far as its writer's machine kept running; it
need not be durable, because the daemon copies it. Its name is drawn anew by each attempt, so
attempts never meet in one file. This module must not know jobs, leases or how a chunk is cut.
"""

import os
import re
import secrets
import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, Self

import xxhash

from dss_core.build import build_frame, split_columns
from dss_core.columns import Columns
from dss_core.errors import FrameCorrupt
from dss_core.frame import HEADER_BYTES as FRAME_HEADER_BYTES
from dss_core.frame import read_header
from dss_core.limits import FRAME_BYTES_MAX, STAGED_READ_BYTES, WRITEV_BUFFERS_MAX
from dss_core.producer_ids import NO_PRODUCER
from dss_core.subject_table import Buffer
from dss_core.vectored import unwritten

if TYPE_CHECKING:
    from dss_core.arrow_columns import Run

STAGED_WRITE_BYTES = 4 << 20
"""Frames of a staged file that are written at once: a third of the time of a call for each."""


STAGED_HEAD_BYTES = 64
STAGED_SUFFIX = ".staged"
UNFINISHED_SUFFIX = ".part"
UPLOAD_SUFFIX = ".upload"
"""Of a file that comes over the wire and is not whole."""
STAGE_PIECE_BYTES = 1 << 20
"""Of such a file in one message."""

_MAGIC = b"DSSSTAGE"
_VERSION = 1
_HEAD = struct.Struct("<8sIIQII")
_CHECKSUM = struct.Struct("<Q")
_NAME = re.compile(r"([0-9a-f]{8})-[0-9a-f]{16}\.staged")


class BadStagedFile(Exception):
    """A staged file is not what it should be. Its text says what is wrong."""


class StagedFor(NamedTuple):
    """What a staged file is for."""

    job_id: int
    chunk: int
    storage_topic_id: int


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A staged file as a commit names it."""

    name: str
    """Without its directory."""
    bytes: int
    records: int


class StagedWriter:
    """Writes one staged file. Leaving its context by an error removes what was written."""

    def __init__(self, directory: Path, staged_for: StagedFor) -> None:
        name = f"{staged_for.chunk:08x}-{secrets.token_hex(8)}{STAGED_SUFFIX}"
        self._path = directory / name
        self._unfinished = directory / (name + UNFINISHED_SUFFIX)
        self._file: BinaryIO = self._unfinished.open("xb", buffering=0)
        self._pieces: list[Buffer] = [_encoded_head(staged_for)]
        self._pieces_bytes = STAGED_HEAD_BYTES
        """Of what is not written yet."""
        self._bytes = STAGED_HEAD_BYTES
        self._records = 0

    def __enter__(self) -> Self:
        """The writer."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove the file unless it was finished."""
        self.discard()

    def add(self, columns: Columns, partition: int) -> None:
        """Append records of one partition, cut into frames of the usual size.

        Raises:
            RecordTooLarge, IllegalSubject, IllegalArgument: as `build_frame`.
        """
        if hasattr(columns.payloads, "to_pylist"):
            self.add_runs(columns, [(partition, 0, columns.records)])
            return
        for part in split_columns(columns):
            frame = build_frame(part, partition=partition, producer_id=NO_PRODUCER, sequence=0)
            self.add_frame(frame, part.records)

    def add_runs(self, columns: Columns, runs: "Sequence[Run]") -> None:
        """Append records that are Arrow arrays, run after run, each cut into frames.

        Raises:
            RecordTooLarge, IllegalSubject, IllegalArgument: as `build_frame`.
        """
        from dss_core.built_runs import BuiltRuns

        built = BuiltRuns(columns, producer_id=NO_PRODUCER, sequence=0)
        for pieces, records in built.frames(runs):
            self._write(pieces, records)

    def add_frame(self, frame: bytes, records: int) -> None:
        """Append a frame that was built with `NO_PRODUCER` and sequence 0."""
        self._write([frame], records)

    def _write(self, pieces: Sequence[Buffer], records: int) -> None:
        size_bytes = sum(map(len, pieces))
        self._pieces += pieces
        self._pieces_bytes += size_bytes
        self._bytes += size_bytes
        self._records += records
        if self._pieces_bytes >= STAGED_WRITE_BYTES or len(self._pieces) >= WRITEV_BUFFERS_MAX:
            self._flush()

    def _flush(self) -> None:
        """Write many frames at once: a call for each, and for what stands before it, costs more."""
        left: Sequence[Buffer] = self._pieces
        self._pieces, self._pieces_bytes = [], 0
        while left:
            written = os.writev(self._file.fileno(), left[:WRITEV_BUFFERS_MAX])
            left = unwritten(left, written)

    @property
    def bytes(self) -> int:
        """Size of the file by now."""
        return self._bytes

    @property
    def records(self) -> int:
        """How many records it holds by now."""
        return self._records

    def finish(self) -> StagedFile:
        """Close the file and give it its name."""
        self._flush()
        self._file.close()
        self._unfinished.rename(self._path)
        return StagedFile(self._path.name, self._bytes, self._records)

    def discard(self) -> None:
        """Close and remove the file, unless it was finished."""
        with suppress(OSError):  # nobody needs the file
            self._file.close()
        self._unfinished.unlink(missing_ok=True)


def chunk_of_name(name: str) -> int | None:
    """The chunk that the name of a finished staged file says; None if it has another form."""
    found = _NAME.fullmatch(name)
    return None if found is None else int(found.group(1), 16)


def staged_frames(
    path: Path, staged_for: StagedFor, bytes_expected: int, read_bytes: int = STAGED_READ_BYTES
) -> Iterator[Sequence[memoryview]]:
    """The frames of a staged file, in order, as many as are read at once.

    They lie end to end, and are of use until the next ones are asked for. Nothing but their headers
    and lengths is checked.

    Raises:
        BadStagedFile: it is for something else, has another size, or is not made of frames.
        OSError: it is not there, or cannot be read.
    """
    with path.open("rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        if size != bytes_expected:
            raise BadStagedFile(f"it has {size:,} bytes, not {bytes_expected:,}")
        check_staged_head(file.read(STAGED_HEAD_BYTES), staged_for)
        # One buffer for all: fresh pages cost more than what is done with them.
        buffer = memoryview(bytearray(min(size, read_bytes + FRAME_BYTES_MAX)))
        held = 0
        while got := file.readinto(buffer[held : held + read_bytes]):
            held += got
            frames = _whole_frames(buffer[:held])
            if frames:
                yield frames
            whole = sum(map(len, frames))
            buffer[: held - whole] = buffer[whole:held]
            held -= whole
        if held:
            raise BadStagedFile("it ends within a frame")


def check_staged_head(head: bytes, staged_for: StagedFor) -> None:
    """Check the first bytes of a staged file.

    Raises:
        BadStagedFile: they are no head, of another version, damaged, or for something else.
    """
    if len(head) < STAGED_HEAD_BYTES or not head.startswith(_MAGIC):
        raise BadStagedFile("it has no head of a staged file")
    _, version, head_bytes, *found = _HEAD.unpack_from(head)
    (checksum,) = _CHECKSUM.unpack_from(head, _HEAD.size)
    if xxhash.xxh3_64_intdigest(head[: _HEAD.size]) != checksum:
        raise BadStagedFile("the checksum of its head does not match")
    if (version, head_bytes) != (_VERSION, STAGED_HEAD_BYTES):
        raise BadStagedFile(f"its version is {version}")
    if StagedFor(*found) != staged_for:
        raise BadStagedFile(f"it is for {StagedFor(*found)}, not {staged_for}")


def _whole_frames(held: memoryview) -> list[memoryview]:
    """The whole frames at the beginning of what was read."""
    frames: list[memoryview] = []
    at = 0
    while len(held) - at >= FRAME_HEADER_BYTES:
        try:
            header = read_header(held, at)
        except FrameCorrupt as error:
            raise BadStagedFile(f"a frame in it is damaged: {error.fields['reason']}") from error
        if at + header.frame_bytes > len(held):
            break
        frames.append(held[at : at + header.frame_bytes])
        at += header.frame_bytes
    return frames


def _encoded_head(staged_for: StagedFor) -> bytes:
    fields = _HEAD.pack(_MAGIC, _VERSION, STAGED_HEAD_BYTES, *staged_for)
    checksum = _CHECKSUM.pack(xxhash.xxh3_64_intdigest(fields))
    return (fields + checksum).ljust(STAGED_HEAD_BYTES, b"\0")
