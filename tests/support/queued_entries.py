"""Entries of queues, as their holder appends them, and a leader that knows of these queues."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dss_api.lane_entries import entry_bytes
from dss_core.build import build_frame
from dss_core.columns import Columns
from dss_core.ids import StreamId
from dss_core.lane import DEAD, ENTRIES, ERROR_HEADER, LANE_HEADER, RETRY, LaneEntry
from dss_core.producer_ids import NO_PRODUCER
from dss_core.progress import Progress, Ranges
from dss_sim.played_groups import Plant
from dssd.log.port import Append, Appended
from dssd.loop_yield import LoopTurn
from dssd.machines.leader.events import LeaderView, StreamView
from dssd.machines.queues import NONE_HURRIED, Hurried, QueueState
from dssd.store.rows import GroupRow


@dataclass(frozen=True, slots=True)
class Failed:
    """A record of partition 0 that failed."""

    offset: int
    error: str = "no route to host"
    error_type: str = "OSError"
    fingerprint: int = 0xABC0000000000001
    key: bytes | None = b"k"
    payload: bytes = b"{}"
    attempt: int = 5
    cause: str = "refused"
    due_ms: int = 0
    partition: int = 0
    client_id: str = ""
    operation: int = 0
    kind: int = 0
    source_level: int = 0
    """Of what the entry was made of: of the stream itself, its offset."""
    source_offset: int = -1


class LanesSeen:
    """Stands in for the registry: a group whose streams have queues, without a leader."""

    def __init__(self, plant: Plant, group: GroupRow) -> None:
        self._plant = plant
        self._group = group
        self._progress: dict[StreamId, Progress] = {}
        self._hurried: dict[StreamId, Hurried] = {}
        self._reported: dict[StreamId, int] = {}

    def done(self, stream: StreamId, progress: Progress) -> None:
        """Which offsets of a stream or a queue are done."""
        self._progress[stream] = progress

    def reported(self, queue: StreamId, end: int) -> None:
        """Up to which entry of a queue its holder told; else to the last."""
        self._reported[queue] = end

    def hurry(self, queue: StreamId, ranges: Ranges) -> None:
        """Which entries an operator brought forward."""
        self._hurried[queue] = Hurried(1, ranges)

    def snapshot(self, group_id: int) -> None:
        """It has no leader."""

    async def view(self, group: GroupRow, turn: LoopTurn) -> LeaderView:
        """The group as its leader has it."""
        assert group == self._group
        topics = self._plant.catalogue.topics()
        views = [self._stream(stream) for topic in topics for stream in topic.streams()]
        return LeaderView(1, rebalancing=False, members=(), streams=tuple(views))

    async def stream(self, group: GroupRow, stream: StreamId) -> StreamView:
        """One stream."""
        return self._stream(stream)

    def queue(self, stream: StreamId, level: int) -> StreamId:
        """The queue of a stream."""
        queues = self._plant.catalogue.queues_of(self._group.group_id, stream)
        assert queues is not None
        return queues[level - 1]

    def _stream(self, stream: StreamId) -> StreamView:
        queues = [self.queue(stream, level) for level in (RETRY, DEAD)]
        states = (
            QueueState(
                each,
                self._progress.get(each, Progress(0)),
                self._reported.get(each, self._plant.log.span(each)[1]),
                hurried=self._hurried.get(each, NONE_HURRIED),
            )
            for each in queues
        )
        view = StreamView(stream, "free", "", 1, self._progress.get(stream, Progress(0)), 0)
        return replace(view, queues=tuple(states))


async def append_entries(plant: Plant, queue: StreamId, failed: Sequence[Failed]) -> None:
    """Append the entries of failed records, in one frame."""
    entries = [
        LaneEntry(
            each.source_level,
            each.source_offset if each.source_level else each.offset,
            0,
            each.partition,
            each.offset,
            1,
            each.attempt,
            due_ms=each.due_ms,
            cause=each.cause,
            error_type=each.error_type,
            fingerprint=each.fingerprint,
            client_id=each.client_id,
            operation=each.operation,
            kind=each.kind,
        )
        for each in failed
    ]
    headers = [
        (
            ("trace", b"t"),
            (LANE_HEADER, entry_bytes(entry)),
            *(((ERROR_HEADER, each.error.encode()),) if each.error else ()),
        )
        for entry, each in zip(entries, failed, strict=True)
    ]
    columns = Columns(
        [each.payload for each in failed], [each.key for each in failed], "orders", headers, 1
    )
    frame = build_frame(
        columns,
        partition=queue.partition,
        producer_id=NO_PRODUCER,
        sequence=0,
        limits=ENTRIES,
    )
    epoch = plant.catalogue.topic_of(queue).topic_epoch
    [appended] = await plant.log.append([Append(queue, frame, epoch)])
    assert isinstance(appended, Appended), appended
