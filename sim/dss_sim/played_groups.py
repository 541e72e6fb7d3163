"""Groups and leaders over a real log, with a store that the test chooses and members that it plays.

Only the wall clock and the durations of leaders differ from those of a daemon.
"""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import TypeVar

from dss_core.build import build_frame
from dss_core.columns import Columns
from dss_core.filters import SubscriptionFilter
from dss_core.ids import StreamId
from dss_core.progress import Progress
from dssd.clock import Clock
from dssd.leaders.groups import Groups
from dssd.leaders.reached_offsets import reached_offsets
from dssd.leaders.registry import Registry
from dssd.log.port import Append, Appended
from dssd.log.segment_log import SegmentLog
from dssd.machines.leader.timing import LeaderTiming
from dssd.machines.messages import (
    Grant,
    GrantedStream,
    LeaderWanted,
    StreamReport,
    ToBorrower,
    UpdateProgress,
)
from dssd.machines.start_point import StartPoint
from dssd.store.port import Store
from dssd.store.rows import GroupRow, StorageTopicRow
from dssd.topics.catalogue import Catalogue, NewTopic

PATIENCE_S = 10.0
"""How long a test waits for something; far longer than it takes."""

LOOK_AGAIN_S = 0.001
"""The pause between two looks of a test that nothing wakes: what it waits for needs the
processor."""

QUICK = LeaderTiming(gather_ms=5, commit_ms=2, reserve_percent=1, idle_ms=60)
"""Durations of a leader, so short that tests hardly notice waiting for them."""

M = TypeVar("M")


class MovedClock(Clock):
    """The machine's clock, and a wall clock that tests can move."""

    __slots__ = ("ahead_ms",)

    def __init__(self) -> None:
        self.ahead_ms = 0

    def wall_ms(self) -> int:
        """The wall clock, moved as far as the test moved it."""
        return super().wall_ms() + self.ahead_ms


class Member:
    """A borrower played by a test."""

    def __init__(self, plant: "Plant", group: GroupRow, name: str, session: str = "") -> None:
        self.borrower_id = name.encode()
        self.session_id = (session or name).encode()
        self.plant = plant
        self.group = group
        self.epoch = 0
        self.inbox: asyncio.Queue[ToBorrower] = asyncio.Queue()
        self.detach = plant.registry.attach_borrower(self.borrower_id, self.inbox.put_nowait)

    def want(self, *held: StreamReport) -> None:
        """Connect to the leader."""
        wanted = LeaderWanted(
            self.borrower_id, self.epoch, self.session_id, self.borrower_id.decode(), held
        )
        self.plant.registry.to_leader(self.group.group_id, wanted)

    async def next(self, kind: type[M]) -> M:
        """The next message of the kind; others are skipped."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                message = await self.inbox.get()
                self.epoch = message.leader_epoch
                if isinstance(message, kind):
                    return message

    async def granted(self, count: int) -> list[GrantedStream]:
        """This many grants, each confirmed; one that is sent again counts once."""
        streams: dict[tuple[StreamId, int], GrantedStream] = {}
        while len(streams) < count:
            grant = await self.next(Grant)
            for granted in grant.streams:
                streams[granted.stream, granted.grant_epoch] = granted
                self.report(granted, granted.progress.floor)
        return list(streams.values())

    def report(self, granted: GrantedStream, floor: int, *, final: bool = False) -> StreamReport:
        """Acknowledge everything below the floor, and say that nothing above it was sent."""
        report = StreamReport(
            granted.stream, granted.grant_epoch, Progress(floor), floor, sent=floor
        )
        message = UpdateProgress(self.borrower_id, self.epoch, (report,), final)
        self.plant.registry.to_leader(self.group.group_id, message)
        return report


class Plant:
    """Everything from the store to the registry; can be restarted."""

    def __init__(self, directory: Path, store: Store) -> None:
        self.directory = directory
        self.store = store
        self.clock = MovedClock()
        self.log: SegmentLog
        self.catalogue: Catalogue
        self.groups: Groups
        self.registry: Registry
        self._sequences: dict[StreamId, int] = {}
        self._running = AsyncExitStack()

    async def start(self, timing: LeaderTiming = QUICK) -> None:
        """Open everything, on the present contents of the store and the directory."""
        rows = [found.row for found in await self.store.scan(StorageTopicRow)]
        self.log = await SegmentLog.open(
            self.directory,
            self.store,
            storage_topics=rows,
            ask_reached=partial(reached_offsets, self.store),
            on_failure=lambda failed: None,
        )
        self.catalogue = await Catalogue.open(self.store, self.log)
        self.groups = await Groups.open(self.store, self.catalogue, self.log, self.clock)
        self.registry = Registry(
            self.store, self.groups, self.catalogue, self.log, self.clock, timing=timing
        )
        self._running.push_async_callback(self.log.close)
        await self._running.enter_async_context(self.registry)

    async def stop(self) -> None:
        """Close everything but the store, in order."""
        await self._running.aclose()

    async def topic(self, name: str, partitions: int = 4) -> tuple[StreamId, ...]:
        """Create a topic; its streams."""
        return (await self.catalogue.create(NewTopic(name, partitions))).streams()

    async def publish(
        self,
        stream: StreamId,
        records: int,
        subject: str = "",
        keys: Sequence[bytes | None] | None = None,
    ) -> None:
        """Append one frame of this many records."""
        topic = self.catalogue.topic_of(stream)
        sequence = self._sequences.get(stream, 0)
        self._sequences[stream] = sequence + 1
        columns = Columns([b"x"] * records, keys, subject or topic.name, None, 1)
        frame = build_frame(
            columns,
            partition=stream.partition,
            producer_id=b"producer of test",
            sequence=sequence,
        )
        [appended] = await self.log.append([Append(stream, frame, topic.topic_epoch)])
        assert isinstance(appended, Appended)

    async def group(self, text: str, start: StartPoint | None = None) -> GroupRow:
        """Declare a group as an operator does."""
        return await self.groups.declare(SubscriptionFilter.parse(text), start=start)

    def member(self, group: GroupRow, name: str, session: str = "") -> Member:
        """A new borrower that has sent nothing yet."""
        return Member(self, group, name, session)
