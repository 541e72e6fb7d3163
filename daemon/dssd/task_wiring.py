"""Gives tasks the functions of the daemon's parts that they need."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from dss_core.changes import Rebalance
from dss_core.errors import TaskFailed
from dssd.addresses import Clients
from dssd.backups.backups import Backups
from dssd.clock import Clock
from dssd.config import Config
from dssd.events.events import Events
from dssd.events.selection import EventSelection
from dssd.leaders.groups import Groups
from dssd.log.segment_log import SegmentLog
from dssd.operations.operations import Caller, Operations
from dssd.operations.plans import subject_of
from dssd.questions.questions import Questions
from dssd.schedules.schedules import ORIGIN, Schedules
from dssd.schedules.tasks.backup import BackupPlace
from dssd.schedules.tasks.dead_letters import DeadCount, QueueChange
from dssd.schedules.tasks.export import NAME as EXPORT
from dssd.schedules.tasks.lag_check import GroupLag
from dssd.schedules.tasks.registry import TaskParts
from dssd.sessions.sessions import Sessions
from dssd.store.rows import OperationRow
from dssd.store.sqlite import SqliteStore
from dssd.topics.catalogue import Catalogue
from dssd.topics.retention import RetentionSchedule

SNAPSHOT_EVENTS_MAX = 500
"""The latest events that a snapshot has: two days of a daemon with trouble."""

SNAPSHOT_OPERATIONS_MAX = 200
"""The latest operations that it has, without their details."""


REBALANCER = Caller("task:rebalance", ORIGIN)
DEAD_LETTERS = Caller("task:dead-letters", ORIGIN)

Facts = Callable[[], Awaitable[Any]]
"""How the daemon stands: a dataclass."""


@dataclass(frozen=True, slots=True)
class TaskWiring:
    """The parts that tasks ask while they run."""

    config: Config
    events: Events
    backups: Backups
    groups: Groups
    operations: Operations
    questions: Questions
    schedules: Schedules
    facts: Facts

    def parts(
        self,
        data_dir: Path,
        clock: Clock,
        store: SqliteStore,
        log: SegmentLog,
        catalogue: Catalogue,
        sessions: Sessions,
        retention: RetentionSchedule,
    ) -> TaskParts:
        """As the registry of tasks takes them."""
        return TaskParts(
            data_dir=data_dir,
            clock=clock,
            note=self.events.note,
            catalogue=catalogue,
            write_back=store.write_back,
            read_sealed=log.scrubbed,
            enforce_retention=retention.enforce,
            discard_expired=sessions.discard_expired,
            sessions_kept=lambda: sessions.counts().kept,
            groups=self.groups.groups,
            change=self._rebalanced,
            begin=self._begun,
            lags=self._lags,
            dead_counts=self._dead_counts,
            gather=self._gathered,
            endpoint=self._endpoint,
            write_backup=self.backups.write,
            backup_place=self._backup_place(),
        )

    def _backup_place(self) -> BackupPlace | None:
        said = self.config.backup
        return None if said is None else BackupPlace(said.directory, said.keep, said.hook)

    async def _rebalanced(self, change: Rebalance) -> OperationRow | None:
        if (await self.operations.plan(change)).nothing_to_do:
            return None
        row = await self.operations.apply(change, caller=REBALANCER)
        return await self.operations.ended(row.number)

    async def _begun(self, change: QueueChange) -> OperationRow | None:
        if (await self.operations.plan(change)).nothing_to_do:
            return None
        return await self.operations.apply(change, caller=DEAD_LETTERS)

    async def _dead_counts(self) -> Sequence[DeadCount]:
        return [
            DeadCount(subject_of(each.group), each.dead)
            for each in await self.questions.overviews.all()
        ]

    async def _lags(self) -> Sequence[GroupLag]:
        return [
            GroupLag(subject_of(each.group), each.lag, each.lag_exact, each.oldest_unacked_us)
            for each in await self.questions.overviews.all()
        ]

    async def _endpoint(self) -> str:
        """An address at which a local process needs no token; a unix socket if there is one.

        Raises:
            TaskFailed: nowhere.
        """
        listening: Sequence[str] = (await self.facts()).listening
        open_to_all = [
            where
            for address, where in zip(self.config.listen, listening, strict=True)
            if address.policy.clients is Clients.ANYBODY
        ]
        if not open_to_all:
            why = "its driver has no token, and gets in nowhere: add --listen unix:PATH."
            raise TaskFailed(task=EXPORT, why=why)
        return min(open_to_all, key=lambda where: not where.startswith("unix:"))

    async def _gathered(self) -> dict[str, Any]:
        """All that a support snapshot has."""
        last = self.events.last_number
        events = await self.events.last_of(EventSelection(), last, SNAPSHOT_EVENTS_MAX)
        operations = islice(self.operations.newest(), SNAPSHOT_OPERATIONS_MAX)
        return {
            "daemon": asdict(await self.facts()),
            "config": asdict(self.config),
            "groups": [asdict(each) for each in await self.questions.overviews.all()],
            "schedules": [asdict(view) for view in self.schedules.views()],
            "operations": [asdict(row) for row in operations],
            "events": [asdict(event) for event in events],
        }
