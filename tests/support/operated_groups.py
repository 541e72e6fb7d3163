"""Operations over groups and leaders of a real log."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

from dss_core.changes import Change
from dss_core.progress import Progress
from dss_sim.played_groups import LOOK_AGAIN_S, PATIENCE_S, Member, Plant
from dssd.machines.messages import (
    Revoke,
    Revoked,
    RevokeFinished,
    StreamReport,
    UpdateProgress,
)
from dssd.operations.kind_table import operation_kinds
from dssd.operations.operations import Caller, Operations
from dssd.operations.plans import KindTable
from dssd.sessions.sessions import Sessions
from dssd.store.port import Store
from dssd.store.rows import GroupRow, OperationRow
from support.bulk_jobs import opened_jobs
from support.heard_events import Heard

ANA = Caller("local:ana", "unix:")


class Works:
    """A plant with operations, which a test may restart."""

    def __init__(self, directory: Path, store: Store) -> None:
        self.plant = Plant(directory, store)
        self.operations: Operations
        self.sessions: Sessions
        self.heard = Heard()
        self.told = self.heard.events
        self.principals = {"loopback", "token:shipper"}
        """The principals to whom sessions may be given."""
        self._running = AsyncExitStack()

    async def start(self) -> None:
        """Open everything."""
        plant = self.plant
        await plant.start()
        parts = (plant.store, plant.groups, plant.registry)
        self.sessions = await Sessions.open(
            plant.store, plant.catalogue, plant.log, plant.groups, plant.registry, plant.clock
        )
        await self._running.enter_async_context(self.sessions)
        self.operations = await Operations.open(*parts, plant.clock, self.heard)
        await self._running.enter_async_context(self.operations.running(await self.kinds()))

    async def kinds(self) -> KindTable:
        """The table of kinds."""
        plant = self.plant
        parts = (plant.store, plant.groups, plant.registry)
        jobs = await opened_jobs(plant)
        return operation_kinds(
            *parts,
            plant.catalogue,
            plant.log,
            self.sessions,
            jobs,
            plant.clock,
            self.heard.note,
            self.operations,
            self.principals.__contains__,
        )

    async def stop(self) -> None:
        """Close everything but the store."""
        await self._running.aclose()
        await self.plant.stop()

    async def restart(self) -> None:
        """End the daemon and start it again."""
        await self.stop()
        await self.start()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Let others run until a condition holds."""
        async with asyncio.timeout(PATIENCE_S):
            while not holds():  # noqa: ASYNC110 - it is told to nobody
                await asyncio.sleep(LOOK_AGAIN_S)

    async def apply(self, change: Change, **more: object) -> OperationRow:
        """Apply a change as an operator does; returns once it has ended."""
        row = await self.operations.apply(change, caller=ANA, **more)  # type: ignore[arg-type] # of apply
        return await self.ended(row.number)

    async def ended(self, number: int) -> OperationRow:
        """The operation, once it has ended."""
        async with asyncio.timeout(PATIENCE_S):
            async for row in self.operations.watch(number):
                last = row
        return last

    async def floors(self, group: str) -> list[int]:
        """The ack floor of each stream."""
        survey = await self.plant.registry.survey(self.plant.groups.find(group))
        return [stream.view.progress.floor for stream in survey.streams]

    async def given_back(self, member: Member, floor: int) -> None:
        """The member is asked for a stream, and gives it back with a last report."""
        revoke = await member.next(Revoke)
        stream, epoch = revoke.stream, revoke.grant_epoch
        report = StreamReport(stream, epoch, Progress(floor), floor, sent=floor)
        to_leader = self.plant.registry.to_leader
        group_id = member.group.group_id
        progress = UpdateProgress(member.borrower_id, member.epoch, (report,), final=True)
        to_leader(group_id, progress)
        await member.next(Revoked)
        finished = RevokeFinished(member.borrower_id, member.epoch, stream, epoch)
        to_leader(group_id, finished)

    async def consumed(self, group: str, records: int) -> Member:
        """A member that has acknowledged this many records of each stream; it stays."""
        row = self.plant.groups.find(group)
        member = self.plant.member(row, "ann")
        member.want()
        streams = len((await self.plant.registry.survey(row)).streams)
        for granted in await member.granted(streams):
            member.report(granted, records)
        await self.until(lambda: self._live_floors(row) == {records})
        return member

    def live_floors(self, group: str) -> set[int]:
        """The ack floors as the live leader has them."""
        return self._live_floors(self.plant.groups.find(group))

    def _live_floors(self, group: GroupRow) -> set[int]:
        live = self.plant.registry.snapshot(group.group_id)
        return {each.progress.floor for each in live.streams} if live else set()
