"""Changes by operators, between the wire and the values of `dss_core.changes`.

They go by the names of their fields; only where a cursor is to stand, a oneof, is told here.
Invariant: what was encoded is decoded as the same change, on either side of the wire.
"""

from dataclasses import astuple, replace
from typing import Any

from dss_api.v1 import operations_pb2 as pb
from dss_api.values import decoded, encoded
from dss_core import changes
from dss_core.changes import Change, MoveCursors, Target
from dss_core.errors import IllegalArgument

_TARGETS: dict[str, type[Any]] = {
    "earliest": changes.ToEarliest,
    "latest": changes.ToLatest,
    "time_us": changes.ToTime,
    "offset": changes.ToOffset,
    "records": changes.ByRecords,
    "span_ms": changes.BySpan,
}
_TARGET_FIELDS = {kind: name for name, kind in _TARGETS.items()}
_FIELDS = {
    each.message_type.name: each.name
    for each in pb.Change.DESCRIPTOR.fields
    if each.message_type is not None
}
"""The field of each kind of change."""


def change_from(message: pb.Change) -> Change:
    """The change of a message.

    Raises:
        IllegalArgument: it is of no known kind, or a word in it is not known.
    """
    name = message.WhichOneof("change")
    if name is None:
        raise IllegalArgument(argument="the change", rule="it is one that this version knows")
    asked = getattr(message, name)
    change: Change = decoded(asked, getattr(changes, asked.DESCRIPTOR.name))
    return replace(change, to=_target(asked)) if isinstance(change, MoveCursors) else change


def change_message(change: Change) -> pb.Change:
    """The message of a change.

    Raises:
        IllegalArgument: a word is not known.
        ValueError: a number or a text does not fit its field.
    """
    kind = type(change).__name__
    if not isinstance(change, MoveCursors):
        message = encoded(change, getattr(pb, kind))
    else:
        message = encoded(replace(change, to=None), pb.MoveCursors)
        if change.to is not None:
            [value] = astuple(change.to) or [True]
            setattr(message, _TARGET_FIELDS[type(change.to)], value)
    return pb.Change(**{_FIELDS[kind]: message})


def _target(message: pb.MoveCursors) -> Target | None:
    name = message.WhichOneof("to")
    if name is None:
        return None
    values = [] if name in ("earliest", "latest") else [getattr(message, name)]
    target: Target = _TARGETS[name](*values)
    return target
