"""Changes to the wire and back, and as JSON documents.

Invariant: what was encoded is decoded as the same change, but for the spelling of its target.
"""

from collections.abc import Mapping
from datetime import timedelta

from google.protobuf import json_format

from dss_api import changes as wire
from dss_api.v1 import operations_pb2 as pb
from dss_client._start_point import time_us
from dss_client.changes import Change, MoveCursors, Target
from dss_core import changes as core
from dss_core.errors import IllegalArgument

_MS = timedelta(milliseconds=1)


def change_to_wire(change: Change) -> pb.Change:
    """The change as the wire has it.

    Raises:
        IllegalArgument, IllegalTime: a value breaks its rule.
    """
    try:
        plain = _plain(change) if isinstance(change, MoveCursors) else change
        return wire.change_message(plain)
    except (ValueError, OverflowError) as problem:
        # The error of protobuf for a number out of range. The change may hold a secret.
        raise IllegalArgument(argument="this change", rule=str(problem)) from problem


def change_from_wire(change: pb.Change) -> Change:
    """The change as a value.

    Raises:
        IllegalArgument: it is of a kind that this version does not know.
    """
    plain = wire.change_from(change)
    return _written(plain) if isinstance(plain, core.MoveCursors) else plain


def document_of(change: Change) -> dict[str, object]:
    """The change as a JSON document."""
    message = change_to_wire(change)
    return json_format.MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )


def change_of(document: Mapping[str, object]) -> Change:
    """The change of a document.

    Raises:
        IllegalArgument: it is not one.
    """
    try:
        return change_from_wire(json_format.ParseDict(dict(document), pb.Change()))
    except json_format.ParseError as problem:
        raise IllegalArgument(argument="the change", rule=str(problem)) from problem


def _plain(change: MoveCursors) -> core.MoveCursors:
    if change.direction not in list(core.Direction):
        rule = f"it is one of {', '.join(core.Direction)}"
        raise IllegalArgument(argument=f"direction {change.direction}", rule=rule)
    if change.to is not None and change.by is not None:
        raise IllegalArgument(argument="the target", rule="say either where to, or by how much")
    return core.MoveCursors(
        change.group,
        core.Direction(change.direction),
        change.streams,
        _distance(change.by) if change.to is None else _target(change.to),
        change.targets,
    )


def _distance(by: int | timedelta | None) -> core.Target | None:
    match by:
        case None:
            return None
        case timedelta():
            return core.BySpan(by // _MS)
        case _:
            return core.ByRecords(by)


def _target(to: Target) -> core.Target:
    match to:
        case "earliest":
            return core.ToEarliest()
        case "latest" | "now":
            return core.ToLatest()
        case int():
            return core.ToOffset(to)
        case str() if to.startswith("=") and to[1:].isascii() and to[1:].isdecimal():
            return core.ToOffset(int(to[1:]))
        case _:
            return core.ToTime(time_us(to))


def _written(change: core.MoveCursors) -> MoveCursors:
    to: Target | None = None
    by: int | timedelta | None = None
    match change.to:
        case core.ToEarliest():
            to = "earliest"
        case core.ToLatest():
            to = "latest"
        case core.ToTime(us):
            to = f"@{us // 1_000_000}.{us % 1_000_000:06}"
        case core.ToOffset(to):
            pass
        case core.ByRecords(by):
            pass
        case core.BySpan(span_ms):
            by = timedelta(milliseconds=span_ms)
        case None:
            pass
    return MoveCursors(change.group, change.direction, to, by, change.streams, change.targets)
