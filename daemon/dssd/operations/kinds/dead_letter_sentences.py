"""The sentences of plans about dead letters that are redriven or discarded."""

import json
from collections.abc import Iterator, Sequence
from shlex import quote

from dss_core.answers import StreamPlan
from dss_core.changes import DiscardDeadLetters, RedriveDeadLetters
from dss_core.counted import counted
from dss_core.times import text_of_span
from dssd.leaders.lag import GroupSurvey
from dssd.machines.queues import BLOCK
from dssd.operations.kinds.clients_named import they
from dssd.operations.kinds.queue_choice import Chosen, names_some
from dssd.operations.plans import Worked, subject_of
from dssd.store.rows import GroupRow, OperationRow

Change = RedriveDeadLetters | DiscardDeadLetters

REDRIVE, DISCARD = "dlq.redrive", "dlq.discard"

GIVEN_UP = frozenset({DISCARD, "rq.skip"})
"""Kinds by which nobody gets the records."""

FINAL = {DISCARD: "what is discarded may leave the disk at once"}
"""Why an operation of a kind cannot be taken back."""


def kind_of(change: Change) -> str:
    """The kind of the operation."""
    return REDRIVE if isinstance(change, RedriveDeadLetters) else DISCARD


def over_ms_of(change: object, chosen: Sequence[Chosen]) -> int:
    """How long a redrive of all takes at its rate; 0: it is no redrive."""
    if not isinstance(change, RedriveDeadLetters) or not change.rate:
        return 0
    return -(-sum(each.count for each in chosen) * 1_000 // change.rate)


def effects_of(
    change: Change,
    group: GroupRow,
    chosen: Sequence[Chosen],
    members: Sequence[str],
    *,
    has_members: bool,
    more: bool,
) -> list[str]:
    """The effects of a change on dead letters."""
    told = [_what_becomes(change, chosen)]
    if isinstance(change, RedriveDeadLetters):
        told += _canary_told(change)
        if not has_members:
            told.append("Nobody is a member: they come back once somebody is.")
    told += told_of_holders(members)
    if more:
        told.append("Not all could be chosen at once: the same command does the rest afterwards.")
    return [*told, *_effects_on_order(change, group, chosen)]


def told_of_holders(members: Sequence[str]) -> Iterator[str]:
    """The effect on the members that hold the streams."""
    if members:
        yield (
            f"{they(members, 'gives', 'give')} these streams back and "
            f"{'gets' if len(members) == 1 else 'get'} them anew, without being disconnected."
        )


def told_back(
    group: GroupRow, chosen: Sequence[Chosen], survey: GroupSurvey, *, more: bool
) -> Iterator[str]:
    """The effects of undoing a redrive on records that still wait."""
    count = sum(each.count for each in chosen)
    goes = "goes" if count == 1 else "go"
    yield f"{counted(count, 'record')} of it still waiting {goes} back to the dead letters."
    yield "What was acknowledged stays so."
    if not survey.members:
        yield "Nobody is a member: they go back once somebody is."
    if group.ordered and group.on_dead_letter == BLOCK:
        yield "Later records of their keys go along, in order."
    yield from told_of_holders(sorted({each.stream.view.client_id for each in chosen} - {""}))
    if more:
        yield "Not all could be found at once: the others stay where they are."


def told_had_left(row: OperationRow, group: GroupRow, left: int) -> Worked:
    """The result of a discard when some of its records had left the dead letters unnoticed."""
    after = json.loads(row.after)
    records = after["records"]
    name = quote(subject_of(group))
    told = (
        f"{records - left:,} of {records:,} dead letters were given up: {left:,} had left before, "
        "unnoticed, because a redrive that was stopped had brought them back, or because they were "
        f"acknowledged after all. To see those that wait: dssctl rq ls {name}; those that are dead "
        f"again: dssctl dlq ls {name}"
    )
    return Worked({**after, "had_left": left}, told)


def stream_plan(kind: str, each: Chosen) -> StreamPlan:
    """What becomes of one stream."""
    view = each.stream.view
    floor = view.progress.floor
    again = each.count if kind == REDRIVE else 0
    passed = each.count if kind in GIVEN_UP else 0
    return StreamPlan(
        str(each.stream.name), floor, floor, again, passed, True, False, view.client_id
    )


def _canary_told(change: RedriveDeadLetters) -> Iterator[str]:
    if change.canary:
        percent = change.canary_percent
        most = f"more than {percent} % of them" if percent else "one of them"
        yield (
            f"The first {change.canary:,} go ahead. The others follow once these are done with, "
            f"and stay dead if {most} fails again."
        )


def _what_becomes(change: Change, chosen: Sequence[Chosen]) -> str:
    count = sum(each.count for each in chosen)
    if isinstance(change, DiscardDeadLetters):
        return f"{counted(count, 'record is', 'records are')} given up, and handed to nobody."
    come = counted(count, "record comes", "records come")
    told = f"{come} again at the first attempt, due at once, at most {change.rate:,} a second"
    over_ms = over_ms_of(change, chosen)
    return f"{told}: in {text_of_span(over_ms)} or more." if over_ms >= 1_000 else f"{told}."


def _effects_on_order(change: Change, group: GroupRow, chosen: Sequence[Chosen]) -> Iterator[str]:
    """The effects on the order of an ordered group."""
    if not group.ordered:
        return
    if group.on_dead_letter != BLOCK:
        if isinstance(change, RedriveDeadLetters):
            yield "They come out of order: later records of their keys went on without them."
        return
    if isinstance(change, DiscardDeadLetters):
        if names_some(change):
            yield "Other dead letters of their keys stay, and hold these keys up."
    elif change.unordered:
        yield (
            "Of each key, the named records come up to its first dead letter that is not named. "
            "That one holds up the key as before, and named records behind it go back to the "
            "dead letters."
        )
    else:
        yield from _whole_keys_told(chosen)
        yield "Each key comes back whole, in order, and before its new records."


def _whole_keys_told(chosen: Sequence[Chosen]) -> Iterator[str]:
    """The number of their keys, if it is known."""
    keys = sum(each.keys for each in chosen)
    along = sum(each.along for each in chosen)
    if along:
        come = "comes" if along == 1 else "come"
        whose = "its key" if along == 1 else "their keys"
        yield f"{along:,} of them did not match, and {come} along with {whose}."
    if keys:
        yield f"They are all the dead letters of {counted(keys, 'key')}."
