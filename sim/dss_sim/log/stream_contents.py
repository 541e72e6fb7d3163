"""What a log gives when it is read from end to end.

Invariant: it only reads. It takes what the chunks of a read say as it is, for others to judge.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from dss_core.decode import decode
from dss_core.frame import HEADER_BYTES, read_header
from dss_core.ids import StreamId
from dss_core.progress import Range
from dssd.log.port import Chunk, Log


@dataclass(frozen=True, slots=True)
class FoundFrame:
    """A frame as the log gives it."""

    base: int
    records: int
    time_us: int
    content: bytes = field(repr=False)

    @property
    def end(self) -> int:
        """The offset behind its last record."""
        return self.base + self.records

    @property
    def body(self) -> bytes:
        """What was sent."""
        return self.content[HEADER_BYTES:]

    @property
    def keys(self) -> tuple[bytes | None, ...]:
        """The keys of its records as a reader has them.

        Raises:
            FrameCorrupt: it is not whole.
        """
        return tuple(decode(self.content).keys)


@dataclass(slots=True)
class StreamFound:
    """What a stream gave."""

    start: int
    end: int
    frames: list[FoundFrame] = field(default_factory=list)
    damaged: list[Range] = field(default_factory=list)
    stuck_at: int | None = None
    """The offset at which a read made no progress."""


async def read_streams(
    log: Log, streams: Iterable[StreamId], bytes_max: int
) -> dict[StreamId, StreamFound]:
    """All that streams hold."""
    return {stream: await read_stream(log, stream, bytes_max) for stream in streams}


async def read_stream(log: Log, stream: StreamId, bytes_max: int) -> StreamFound:
    """All that a stream holds."""
    bounds = log.bounds(stream)
    found = StreamFound(bounds.start, bounds.end)
    at = bounds.start
    while at < bounds.end:
        chunk = await log.read(stream, at, bytes_max=bytes_max)
        found.frames += frames_of(chunk)
        found.damaged += chunk.damaged
        if chunk.next <= at:
            found.stuck_at = at
            break
        at = chunk.next
    return found


def frames_of(chunk: Chunk) -> list[FoundFrame]:
    """The frames of a chunk, apart."""
    frames: list[FoundFrame] = []
    at = 0
    while at < len(chunk.frames):
        header = read_header(chunk.frames, at)
        content = chunk.frames[at : at + header.frame_bytes]
        found = FoundFrame(header.base_offset, header.records, header.append_time_us, content)
        frames.append(found)
        at += header.frame_bytes
    return frames
