"""What the daemon does by the clock: schedules, their runs, and the tasks that there are.

Schedules are made and changed by `Operations.apply` of `CreateSchedule` and its like. Invariant:
frozen values out; no wire message leaves this module.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dss_api.values import decoded

if TYPE_CHECKING:
    from dss_client._connection import Connection


@dataclass(frozen=True, slots=True)
class ScheduleRun:
    """A run of a schedule, or due times that were not run."""

    run: int
    due_at_ms: int
    cause: str
    """``cron``, ``catch-up`` or ``operator``."""
    state: str
    """``queued``, ``running``, ``retrying``, ``done``, ``failed``, ``timed-out``, ``interrupted``,
    ``cancelled`` or ``skipped``."""
    attempt: int
    started_at_ms: int | None
    ended_at_ms: int | None
    retry_at_ms: int | None
    """When the next attempt begins."""
    operation: int
    """Of the latest attempt; 0: none."""
    output: str
    failure: str
    """Why it failed, or was skipped; empty where it did not."""
    count: int
    """Of due times that it stands for."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """A task that the daemon runs by the clock."""

    name: str
    task: str
    arguments: Mapping[str, str]
    cron: str
    time_zone: str
    jitter_ms: int
    overlap: str
    """``skip``, ``queue`` or ``allow``."""
    catch_up_ms: int
    timeout_ms: int
    retries: int
    backoff_ms: int
    paused: bool
    created_at_ms: int
    revision: int
    state: str
    """``running``, ``retrying``, ``queued``, ``paused``, ``idle``, or ``broken`` where this machine
    does not know its time zone."""
    next_at_ms: int | None
    """None where it is paused or broken."""
    unended: tuple[ScheduleRun, ...]
    last: ScheduleRun | None
    """The newest run that ended."""
    principal: str = ""
    """The principal that it acts for; empty for one from before that was stored."""


@dataclass(frozen=True, slots=True)
class ScheduleDescription:
    """A schedule, when it is due, and what became of its runs."""

    schedule: Schedule
    next_ms: tuple[int, ...]
    runs: tuple[ScheduleRun, ...]
    """Those that are kept, the newest first."""


@dataclass(frozen=True, slots=True)
class DueTime:
    """When a schedule is due."""

    at_ms: int
    local: str
    """On the wall in its time zone, RFC 3339."""
    delay_ms: int
    """How much later the run begins, by the jitter."""


@dataclass(frozen=True, slots=True)
class TaskArgument:
    """What a task may be given."""

    name: str
    meaning: str
    default: str
    """Where it is not given; may be empty."""


@dataclass(frozen=True, slots=True)
class Task:
    """What the daemon can do by the clock, or at once."""

    name: str
    meaning: str
    alone: bool
    """A second run beside the first is refused."""
    arguments: tuple[TaskArgument, ...]


class Schedules:
    """The schedules of a daemon; reached as ``client.schedules``."""

    def __init__(self, connection: "Connection") -> None:
        self._connection = connection

    async def list(self) -> tuple[Schedule, ...]:
        """Every schedule, by name."""
        from dss_api.v1 import schedules_pb2

        request = schedules_pb2.ListSchedulesRequest()
        reply = await self._connection.ask(self._connection.schedules.List, request)
        return tuple(decoded(each, Schedule) for each in reply.schedules)

    async def describe(self, name: str) -> ScheduleDescription:
        """One schedule, when it is due, and its runs.

        Raises:
            ScheduleNotFound: there is none of this name.
        """
        from dss_api.v1 import schedules_pb2

        request = schedules_pb2.DescribeScheduleRequest(name=name)
        reply = await self._connection.ask(self._connection.schedules.Describe, request)
        return decoded(reply, ScheduleDescription)

    async def preview(
        self, name: str = "", *, cron: str = "", time_zone: str = "", count: int = 5
    ) -> tuple[DueTime, ...]:
        """When a schedule is due next, or else a cron expression in a time zone.

        Raises:
            ScheduleNotFound, IllegalCron, IllegalTimeZone, IllegalArgument: it cannot be said.
        """
        from dss_api.v1 import schedules_pb2

        request = schedules_pb2.PreviewScheduleRequest(
            name=name, cron=cron, time_zone=time_zone, count=count
        )
        reply = await self._connection.ask(self._connection.schedules.Preview, request)
        return tuple(decoded(each, DueTime) for each in reply.times)

    async def trigger(self, name: str, *, reason: str = "") -> ScheduleRun:
        """Run it now, whether it is paused or not; returns once the run has its operation.

        Raises:
            ScheduleNotFound: there is none of this name.
            ScheduleBusy: it has a run that has not ended, and none may run beside it.
        """
        from dss_api.v1 import schedules_pb2

        request = schedules_pb2.TriggerScheduleRequest(name=name, reason=reason)
        reply = await self._connection.change(self._connection.schedules.Trigger, request)
        return decoded(reply, ScheduleRun)

    async def tasks(self) -> tuple[Task, ...]:
        """What the daemon can do by the clock, by name."""
        from dss_api.v1 import schedules_pb2

        request = schedules_pb2.ListTasksRequest()
        reply = await self._connection.ask(self._connection.schedules.Tasks, request)
        return tuple(decoded(task, Task) for task in reply.tasks)
