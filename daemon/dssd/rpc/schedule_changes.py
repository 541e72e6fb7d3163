"""Changes of schedules, and runs of tasks, between the wire and their values.

Invariant: as in `dssd.rpc.changes`, which has the table of all.
"""

from collections.abc import Callable, Mapping
from typing import Any

from google.protobuf.message import Message

from dss_api.v1 import operations_pb2
from dss_core.errors import IllegalArgument
from dssd.machines.start_point import OFFSET_MAX
from dssd.operations.changes import (
    Arguments,
    Change,
    CreateSchedule,
    EditSchedule,
    PauseSchedule,
    RemoveSchedule,
    ResumeSchedule,
    RunTask,
)

_OPTIONAL = (
    "time_zone", "jitter_ms", "overlap", "catch_up_ms", "timeout_ms", "retries", "backoff_ms",
)  # fmt: skip
"""Of a schedule that is made or edited."""


def _arguments(message: Any) -> Arguments:  # noqa: ANN401 - of any change that has some
    return tuple(sorted(message.arguments.items()))


def _present(message: Message, names: tuple[str, ...]) -> dict[str, Any]:
    """The fields that are there.

    Raises:
        IllegalArgument: a number is larger than the store can keep.
    """
    found = {name: getattr(message, name) for name in names if message.HasField(name)}
    for name, value in found.items():
        if isinstance(value, int) and value > OFFSET_MAX:
            raise IllegalArgument(argument=f"{name} {value}", rule=f"it is at most {OFFSET_MAX}")
    return found


def _run_task(message: operations_pb2.RunTask) -> RunTask:
    return RunTask(message.task, _arguments(message), **_present(message, ("timeout_ms",)))


def _run_task_message(change: RunTask) -> tuple[str, operations_pb2.RunTask]:
    return "run_task", operations_pb2.RunTask(
        task=change.task, arguments=dict(change.arguments), timeout_ms=change.timeout_ms
    )


def _create(message: operations_pb2.CreateSchedule) -> CreateSchedule:
    return CreateSchedule(
        message.schedule,
        message.task,
        message.cron,
        _arguments(message),
        paused=message.paused,
        **_present(message, _OPTIONAL),
    )


def _create_message(change: CreateSchedule) -> tuple[str, operations_pb2.CreateSchedule]:
    given = {name: getattr(change, name) for name in _OPTIONAL}
    return "create_schedule", operations_pb2.CreateSchedule(
        schedule=change.schedule,
        task=change.task,
        cron=change.cron,
        arguments=dict(change.arguments),
        paused=change.paused,
        **given,
    )


def _edit(message: operations_pb2.EditSchedule) -> EditSchedule:
    return EditSchedule(
        message.schedule,
        arguments=_arguments(message),
        no_arguments=tuple(message.no_arguments),
        **_present(message, ("cron", *_OPTIONAL)),
    )


def _edit_message(change: EditSchedule) -> tuple[str, operations_pb2.EditSchedule]:
    given = {name: getattr(change, name) for name in ("cron", *_OPTIONAL)}
    return "edit_schedule", operations_pb2.EditSchedule(
        schedule=change.schedule,
        arguments=dict(change.arguments),
        no_arguments=change.no_arguments,
        **given,
    )


SCHEDULE_DECODERS: Mapping[str, Callable[[Any], Change]] = {
    "run_task": _run_task,
    "create_schedule": _create,
    "edit_schedule": _edit,
    "remove_schedule": lambda message: RemoveSchedule(message.schedule),
    "pause_schedule": lambda message: PauseSchedule(message.schedule),
    "resume_schedule": lambda message: ResumeSchedule(message.schedule),
}

SCHEDULE_ENCODERS: Mapping[type[Change], Callable[[Any], tuple[str, Any]]] = {
    RunTask: _run_task_message,
    CreateSchedule: _create_message,
    EditSchedule: _edit_message,
    RemoveSchedule: lambda change: (
        "remove_schedule",
        operations_pb2.RemoveSchedule(schedule=change.schedule),
    ),
    PauseSchedule: lambda change: (
        "pause_schedule",
        operations_pb2.PauseSchedule(schedule=change.schedule),
    ),
    ResumeSchedule: lambda change: (
        "resume_schedule",
        operations_pb2.ResumeSchedule(schedule=change.schedule),
    ),
}
