"""A delivery window between a made-up log and a client that tests play; no loop, no real frames."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise

from dss_core.ids import StreamId
from dss_core.progress import Progress, Ranges, clipped, complement, normalised, without
from dssd.machines.attempts import Attempts, Rests
from dssd.machines.delivery.events import (
    ChunkRead,
    Deliver,
    DeliveryEffect,
    DeliveryInput,
    Installed,
    Read,
    ReadFailed,
    Report,
    Ticked,
)
from dssd.machines.delivery.frame_plan import FrameSpans
from dssd.machines.delivery.window import DeliveryWindow
from dssd.machines.fate import Fate
from dssd.machines.messages import GrantedStream, StreamReport

ACK_WAIT_MS = 30_000


def frame(base: int, records: int, size: int = 100) -> bytes:
    """A stand-in for a frame, of exactly this size."""
    head = f"{base},{records};".encode()
    return head + b"." * (size - len(head) - 1) + b"|"


def cut(frames: bytes) -> FrameSpans:
    """The places of stand-ins; some of a stream may be left out between them."""
    spans = FrameSpans([0], [])
    end = 0
    while spans.at[-1] < len(frames):
        at = spans.at[-1]
        base, records = map(int, frames[at : frames.index(b";", at)].split(b","))
        assert base >= end
        spans = FrameSpans([*spans.at, frames.index(b"|", at) + 1], [*spans.base, base])
        end = base + records
    return spans._replace(base=[*spans.base, end])


class Stream:
    """A log of one stream: frames of given sizes, some records masked by a filter."""

    def __init__(
        self,
        sizes: Sequence[int],
        mask: Ranges = (),
        start: int = 0,
        lost: Ranges = (),
        damaged: Ranges = (),
    ) -> None:
        self.frames: list[tuple[int, int]] = []
        self.end = 0
        self.mask = mask
        self.start = start
        self.lost = lost
        self.damaged = damaged
        self.per_read = 3
        self.unreadable = (0, 0)
        """Reads from these offsets fail."""
        for size in sizes:
            self.append(size)

    def append(self, records: int) -> None:
        """One more frame."""
        self.frames.append((self.end, records))
        self.end += records

    def read(self, read: Read) -> ChunkRead:
        """Answer a read as the log does."""
        at = max(read.offset, self.start)
        first = bisect_right(self.frames, at, key=sum)
        found = self.frames[first : first + self.per_read]
        if not found:
            end = max(read.offset, self.start)
            return ChunkRead(
                read.grant, read.offset, b"", (), 0, end, end, *self._skipped(read.offset, end)
            )
        base, end = found[0][0], found[-1][0] + found[-1][1]
        below = [(base, at)] if base < at else []
        mask = (*below, *((max(a, at), b) for a, b in self.mask if b > at and a < end))
        rejected = tuple((a, min(b, end)) for a, b in mask if a < min(b, end))
        frames = b"".join(frame(b, n) for b, n in found)
        skipped = self._skipped(read.offset, base)
        whole = read.grant, read.offset, frames, rejected, end - base, base, end, *skipped
        return ChunkRead(*whole, at_end=end >= self.end)

    def _skipped(self, start: int, end: int) -> tuple[Ranges, Ranges]:
        return clipped(self.lost, start, end), clipped(self.damaged, start, end)


class Client:
    """Feeds a window, answers its reads, and keeps what it sent."""

    def __init__(self, records: int = 1_000, size: int = 1 << 20) -> None:
        self.window = DeliveryWindow(cut, credit_records=records, credit_bytes=size)
        self.now_ms = 0
        self.streams: dict[int, Stream] = {}
        self.failing: dict[int, int] = {}
        self.delivered: list[Deliver] = []
        self.reports: dict[int, StreamReport] = {}
        self.others: list[DeliveryEffect] = []

    def install(
        self,
        grant: int,
        stream: Stream,
        *,
        subscription: int = 1,
        progress: Progress | None = None,
        frontier: int = 0,
        attempts: Attempts = (),
        suspect_end: int = 0,
        ack_wait_ms: int = ACK_WAIT_MS,
        rests: Rests = (),
        doubts: Attempts = (),
        wall_ahead_ms: int = 0,
        stall: bool = False,
        failing: int = 0,
    ) -> None:
        """Lend a stream under a number; its first reads fail this often."""
        self.streams[grant] = stream
        self.failing[grant] = failing
        granted = GrantedStream(
            StreamId(1, grant),
            1,
            progress or Progress(0),
            frontier,
            attempts,
            suspect_end,
            Fate(rests=rests, doubts=doubts),
        )
        self.feed(Installed(grant, subscription, granted, ack_wait_ms, wall_ahead_ms, stall))

    def feed(self, *inputs: DeliveryInput) -> None:
        """Give inputs, and carry out the window's requests."""
        todo = list(inputs)
        while todo:
            for effect in self.window.step(todo.pop(0), self.now_ms):
                match effect:
                    case Read(grant) if self.failing[grant]:
                        self.failing[grant] -= 1
                        todo.append(ReadFailed(grant))
                    case Read(grant, _, offset) if offset in range(*self.streams[grant].unreadable):
                        todo.append(ReadFailed(grant))
                    case Read(grant):
                        todo.append(self.streams[grant].read(effect))
                    case Deliver():
                        self.delivered.append(effect)
                    case Report(reports):
                        self.others.append(effect)
                        self.reports.update(dict(reports))
                    case _:
                        self.others.append(effect)

    def tick(self, by_ms: int) -> None:
        """Let time pass, with a tick wherever the window wants one."""
        until_ms = self.now_ms + by_ms
        while self.window.wake_at_ms is not None and self.window.wake_at_ms <= until_ms:
            self.now_ms = max(self.now_ms, self.window.wake_at_ms)
            self.feed(Ticked())
        self.now_ms = until_ms

    def take(self) -> list[tuple[Ranges, bool, int]]:
        """Deliveries since the last call: (offsets for the user, redelivered, attempt)."""
        taken = [(offsets(each), each.redelivered, each.attempt) for each in self.delivered]
        self.delivered.clear()
        return taken

    def take_others(self) -> list[DeliveryEffect]:
        """Other requests since the last call, except reads and reports."""
        taken: list[DeliveryEffect] = []
        taken += [each for each in self.others if not isinstance(each, Report)]
        self.others.clear()
        return taken


def offsets(delivery: Deliver) -> Ranges:
    """The offsets for the user; each must lie in a frame."""
    spans = cut(delivery.frames)
    wanted = complement(delivery.mask, spans.base[0], spans.base[-1])
    frames = (delivery.frames[low:high] for low, high in pairwise(spans.at))
    held = normalised((each.base[0], each.base[-1]) for each in map(cut, frames))
    assert not without(wanted, held)
    return wanted
