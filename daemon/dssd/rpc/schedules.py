"""The servicer of `Schedules`: decodes, asks the schedules, encodes."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import grpc.aio

from dss_api.v1 import schedules_pb2, schedules_pb2_grpc
from dss_api.values import message_of
from dss_core.errors import IllegalArgument
from dss_core.redaction import masked
from dssd.schedules.cron import fire_times
from dssd.schedules.definitions import arguments_of, times_of
from dssd.schedules.due_times import delay_ms
from dssd.schedules.schedules import Schedules
from dssd.schedules.tasks.model import Task, Tasks
from dssd.schedules.views import ScheduleView
from dssd.store.schedule_rows import ScheduleRunRow

TIMES_DESCRIBED = 5
"""Due times that the description of a schedule names."""


PREVIEWED_MAX = 100
"""Due times in one answer."""


Context = grpc.aio.ServicerContext[Any, Any]


class SchedulesServicer(schedules_pb2_grpc.SchedulesServicer):
    """Serves what operators ask of schedules and tasks."""

    def __init__(self, schedules: Schedules, tasks: Tasks) -> None:
        self._schedules = schedules
        self._tasks = tasks

    async def List(
        self, request: schedules_pb2.ListSchedulesRequest, context: Context
    ) -> schedules_pb2.ListSchedulesReply:
        """How all of them stand."""
        views = map(schedule_message, self._schedules.views())
        return schedules_pb2.ListSchedulesReply(schedules=views)

    async def Describe(
        self, request: schedules_pb2.DescribeScheduleRequest, context: Context
    ) -> schedules_pb2.ScheduleDescription:
        """How one stands, when it is due, and its runs."""
        view = self._schedules.view(request.name)
        runs = await self._schedules.runs(request.name)
        due: Iterator[int] = iter(())
        if view.next_ms is not None:
            due = times_of(view.row).following(self._schedules.now_ms())
        return schedules_pb2.ScheduleDescription(
            schedule=schedule_message(view),
            next_ms=islice(due, TIMES_DESCRIBED),
            runs=map(run_message, runs),
        )

    async def Preview(
        self, request: schedules_pb2.PreviewScheduleRequest, context: Context
    ) -> schedules_pb2.PreviewScheduleReply:
        """When a schedule, or a cron expression, is due."""
        if not 0 < request.count <= PREVIEWED_MAX:
            raise IllegalArgument(argument=f"count {request.count}", rule=f"1 to {PREVIEWED_MAX}")
        row = self._schedules.view(request.name).row if request.name else None
        time_zone = row.time_zone if row else request.time_zone or "UTC"
        times = fire_times(row.cron if row else request.cron, time_zone)
        found = islice(times.following(self._schedules.now_ms()), request.count)
        return schedules_pb2.PreviewScheduleReply(
            time_zone=time_zone,
            times=[
                schedules_pb2.PreviewedTime(
                    at_ms=at_ms,
                    local=times.local(at_ms),
                    delay_ms=delay_ms(row, at_ms) if row else 0,
                )
                for at_ms in found
            ],
        )

    async def Trigger(
        self, request: schedules_pb2.TriggerScheduleRequest, context: Context
    ) -> schedules_pb2.ScheduleRun:
        """Run a schedule now."""
        return run_message(await self._schedules.trigger(request.name, request.reason))

    async def Tasks(
        self, request: schedules_pb2.ListTasksRequest, context: Context
    ) -> schedules_pb2.ListTasksReply:
        """What the daemon can do by the clock."""
        return schedules_pb2.ListTasksReply(tasks=map(_task_message, self._tasks))


def schedule_message(view: ScheduleView) -> schedules_pb2.Schedule:
    """A schedule on the wire."""
    return message_of(
        schedules_pb2.Schedule,
        view.row,
        arguments={name: masked(text) for name, text in arguments_of(view.row).items()},
        state=view.state,
        next_at_ms=view.next_ms,
        unended=map(run_message, view.unended),
        last=run_message(view.last) if view.last else None,
    )


def run_message(row: ScheduleRunRow) -> schedules_pb2.ScheduleRun:
    """A run on the wire."""
    shown = replace(row, output=masked(row.output), failure=masked(row.failure))
    return message_of(schedules_pb2.ScheduleRun, shown, due_at_ms=row.due_ms)


def _task_message(task: Task) -> schedules_pb2.TaskSummary:
    arguments = [message_of(schedules_pb2.TaskArgument, each) for each in task.arguments]
    return message_of(schedules_pb2.TaskSummary, task, arguments=arguments)
