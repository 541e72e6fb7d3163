"""Describes each call that changes something, for the audit.

Invariant: one line for each method of operators and administrators, and one for plans: operators
plan a change first, so refusals happen there. Nothing here checks a request: a refused one is
described as it came.
"""

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, NamedTuple

from dss_api.v1 import access_pb2, operations_pb2


class CallAsked(NamedTuple):
    """What a call asks for."""

    action: str
    """After "to", for people."""
    subject: str


APPLY = "/dss_api.v1.Operations/Apply"
PLAN = "/dss_api.v1.Operations/Plan"
PRINCIPALS = "/dss_api.v1.Access/List"
CONFIRM_BACKUP = "/dss_api.v1.Backups/Confirm"
ONLY_REFUSALS = frozenset({APPLY, PLAN, PRINCIPALS, CONFIRM_BACKUP})
"""Methods without an event here: operations have `operation.applied`, backups `backup.done`, and
the others change nothing."""

DESCRIBED: Mapping[str, Callable[[Any], CallAsked]] = {
    "/dss_api.v1.Topics/Create": lambda request: CallAsked("create the topic", request.name),
    "/dss_api.v1.Topics/Remove": lambda request: CallAsked("remove the topic", request.name),
    "/dss_api.v1.Groups/Create": lambda request: CallAsked("create the group", request.filter),
    "/dss_api.v1.Groups/Remove": lambda request: CallAsked("remove the group", request.group),
    "/dss_api.v1.Schedules/Trigger": lambda request: CallAsked(
        "trigger the schedule", request.name
    ),
    PRINCIPALS: lambda _: CallAsked("list", "principals"),
    "/dss_api.v1.Access/Put": lambda request: CallAsked(_put(request), request.name),
    "/dss_api.v1.Access/Rotate": lambda request: CallAsked("give another token to", request.name),
    "/dss_api.v1.Access/Remove": lambda request: CallAsked("let in no more", request.name),
    "/dss_api.v1.Access/Confirm": lambda request: CallAsked(
        "let in again", ", ".join(request.names) or "all that are suspended"
    ),
    "/dss_api.v1.Backups/Create": lambda _: CallAsked("copy", "all data"),
    CONFIRM_BACKUP: lambda request: CallAsked("confirm the backup in", request.destination),
    APPLY: lambda request: _changing("apply", request.change),
    PLAN: lambda request: _changing("plan", request.change),
    "/dss_api.v1.Operations/Cancel": lambda request: CallAsked(
        "cancel the operation", str(request.number)
    ),
}

_unchanged: ContextVar[bool] = ContextVar("unchanged", default=False)


def note_unchanged() -> None:
    """Called by a servicer: the present call found everything as requested and changed nothing."""
    _unchanged.set(True)


def begin_call() -> None:
    """A call begins in this task."""
    _unchanged.set(False)


def changed() -> bool:
    """Whether the call in this task may have changed something."""
    return not _unchanged.get()


def _changing(action: str, asked: operations_pb2.Change) -> CallAsked:
    kind = asked.WhichOneof("change") or "nothing"
    change = getattr(asked, kind, None)
    subjects = (
        getattr(change, name, "")
        for name in ("group", "topic", "job", "name", "client_id", "number", "schedule", "task")
    )
    subject = next((str(each) for each in subjects if each), "")
    return CallAsked(f"{action} the change '{kind.replace('_', ' ')}' for", subject)


def _put(request: access_pb2.PutPrincipalRequest) -> str:
    """What an administrator gives: roles with their filters, no token."""
    roles = "; ".join(
        " ".join([each.role, *each.topics, *each.groups]) for each in request.permissions
    )
    return f"allow {'also ' if request.add else ''}({roles}) to"
