"""Edits fields of a row, and keeps what an undo needs to set them back.

An edit counts from its commit on, also for live streams. The row of the operation has the former
value of each changed field, so an undo sets back field by field. Invariant: an edit is not undone
if a later one changed the same field, and was not undone itself.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dss_core.errors import IllegalArgument, NotUndoable
from dss_core.times import parse_span_ms, text_of_span
from dssd.operations.plans import Plan
from dssd.store.paging import scan_all
from dssd.store.port import Store
from dssd.store.rows import GroupRow, OperationRow
from dssd.topics.catalogue import Topic

Fields = Mapping[str, Any]
"""Fields of a row with their wanted values."""

TOPIC_ID = "topic_id"
"""The id in ``before`` and ``after`` of an edit: a topic of the same name may be a new one."""


def asked(values: Fields, lifted: Sequence[str] = ()) -> Fields:
    """The fields that an edit asks for: values, and limits to lift.

    Raises:
        IllegalArgument: it asks for nothing, or both for a limit and to lift it.
    """
    wanted = {name: value for name, value in values.items() if value is not None}
    both = [name for name in lifted if name in wanted]
    if both:
        raise IllegalArgument(
            argument=f"a value for {both[0]}", rule="the same edit lifts that limit"
        )
    wanted |= dict.fromkeys(lifted)
    if not wanted:
        raise IllegalArgument(
            argument="an edit of nothing", rule=f"name one of {', '.join(values)}"
        )
    return wanted


def changed_fields(subject: GroupRow | Topic, wanted: Fields) -> dict[str, Any]:
    """The wanted fields whose present values differ."""
    return {name: value for name, value in wanted.items() if getattr(subject, name) != value}


def present_fields(subject: GroupRow | Topic, names: Fields) -> dict[str, Any]:
    """The fields as they are now."""
    return {name: getattr(subject, name) for name in names}


def written(subject: GroupRow | Topic, changed: Fields) -> str:
    """What an edit changes, for people."""
    if not changed:
        return "nothing would change"
    return ", ".join(
        f"{option_of(name)} from {_word(name, getattr(subject, name))} to {_word(name, value)}"
        for name, value in changed.items()
    )


def option_of(name: str) -> str:
    """A field as the option is called that sets it: ack_wait_ms is ack-wait."""
    return name.removesuffix("_ms").replace("_", "-")


def _word(name: str, value: object) -> str:
    """A value of a field as people write it."""
    if value is None or value == "" or (value == 0 and name in _NONE_IS_ZERO):
        return "none"
    if name.endswith("_ms"):
        return ",".join(_span(int(each)) for each in str(value).split(","))
    match value:
        case bool():
            return "yes" if value else "no"
        case int():
            return _size(value) if name.endswith("_bytes") else f"{value:,}"
        case _:
            return str(value)


_NONE_IS_ZERO = ("queue_records", "queue_bytes")
"""The word for a group without queues."""

_SIZE_UNITS = ("B", "K", "M", "G", "T")


def _size(value: int) -> str:
    """An amount of bytes, exactly, in the largest unit that it is a multiple of."""
    at = 0
    while value and value % 1_024 == 0 and at < len(_SIZE_UNITS) - 1:
        value, at = value // 1_024, at + 1
    return f"{value:,}{_SIZE_UNITS[at]}"


def _span(ms: int) -> str:
    """An exact span; in milliseconds if two units cannot express it."""
    text = _EMPTY_UNIT.sub("", text_of_span(ms))
    return text if parse_span_ms(text) == ms else f"{ms}ms"


_EMPTY_UNIT = re.compile(r"(?<=[mhd])00[smh]$")


def taken_back(plan: Plan, undone: OperationRow) -> Plan:
    """The plan of an edit that sets back what an operation changed."""
    return replace(plan, summary=f"take back operation {undone.number}: {plan.summary}")


async def fields_before(store: Store, undone: OperationRow) -> Fields:
    """The fields that an edit changed, as they were.

    Raises:
        NotUndoable: a later edit changed one of them, and stands.
    """
    mine = _fields_changed(undone)
    found = await scan_all(store, OperationRow, after=(undone.number,))
    later = {each.row.number: each.row for each in found}
    for row in later.values():
        # The undo of a later edit counts together with that edit.
        if row.undoes > undone.number or not _is_of(row, undone) or not _stands(row, later):
            continue
        again = sorted(mine & _fields_changed(row))
        if again:
            named = ", ".join(map(option_of, again))
            why = f"operation {row.number} changed {named} after it"
            raise NotUndoable(number=undone.number, kind=undone.kind, why=why)
    before = json.loads(undone.before)
    return {name: before[name] for name in sorted(mine)}


def _fields_changed(edit: OperationRow) -> set[str]:
    before, after = json.loads(edit.before), json.loads(edit.after)
    return {name for name in after if name != TOPIC_ID and after[name] != before[name]}


def _is_of(row: OperationRow, undone: OperationRow) -> bool:
    """Whether both are edits of the same topic or group."""
    noun_and_verb = undone.kind.split(".")[:2]
    same = (row.subject, row.group_id) == (undone.subject, undone.group_id)
    return same and row.kind.split(".")[:2] == noun_and_verb


def _stands(row: OperationRow, later: Mapping[int, OperationRow]) -> bool:
    """Whether an operation was not undone, or its undo was undone."""
    taken_back_by = later.get(row.undone_by)
    return taken_back_by is None or not _stands(taken_back_by, later)
