"""The sentences of a plan that moves cursors.

Invariant: all numbers are from the plans of the streams. This module does not know how cursors
move.
"""

from collections.abc import Iterator, Sequence
from shlex import quote

from dss_core.answers import StreamPlan
from dss_core.counted import counted
from dssd.leaders.lag import StreamSurvey
from dssd.operations.kinds.clients_named import they
from dssd.operations.plans import subject_of
from dssd.store.rows import GroupRow

STREAMS_NAMED_MAX = 5
"""How many names a sentence has; the rest is counted, so that it fits a line or two."""


def summary_of(kind: str, group: GroupRow, touched: int, streams: Sequence[StreamPlan]) -> str:
    """What the operation does, in a line."""
    again, passed = sum(each.again for each in streams), sum(each.passed for each in streams)
    if not touched:
        return f"{_verb(kind)} {subject_of(group)}: nothing would change"
    return (
        f"{_verb(kind)} {subject_of(group)}: {touched} of {counted(len(streams), 'stream')}; "
        f"{counted(again, 'record comes', 'records come')} again, {passed:,} passed over"
    )


def _verb(kind: str) -> str:
    """``rewind`` of offsets.rewind; a skip of single records says so."""
    noun, _, verb = kind.partition(".")
    return f"{verb} records of" if noun == "records" else verb


def effects_of(
    group: GroupRow, streams: Sequence[StreamPlan], members: Sequence[str]
) -> Iterator[str]:
    """The effects on members and records."""
    again, passed = sum(each.again for each in streams), sum(each.passed for each in streams)
    most = "" if all(each.exact for each in streams) else "at most "
    if again:
        order = _of_which_order(group, streams)
        yield (
            f"{most}{counted(again, 'record comes', 'records come')} again, marked as redelivered, "
            f"at the first attempt; records of a key come in order{order}."
        )
    if passed:
        over = counted(passed, "record is", "records are")
        yield f"{most}{over} passed over, and handed to no member of the group."
    if members:
        yield (
            f"{they(members, 'gives', 'give')} these streams back and "
            f"{'gets' if len(members) == 1 else 'get'} them anew, without being disconnected. "
            "Records in flight are settled first, or come again."
        )
    for each in streams:
        if each.clamped:
            yield f"{each.stream} begins at {each.target}: retention took what lies before."


def _of_which_order(group: GroupRow, streams: Sequence[StreamPlan]) -> str:
    """A group without order reads old and new streams of a topic side by side."""
    if group.ordered:
        return ""
    storage_topics = {each.stream.rpartition("/")[0] for each in streams if each.again}
    topics = {each.rpartition("/")[0] for each in storage_topics}
    return " within each storage topic" if len(storage_topics) > len(topics) else ""


def closed_by(
    again: Sequence[str], later: Sequence[StreamSurvey], streams: Sequence[StreamPlan]
) -> Iterator[str]:
    """The streams that are closed again, because their parents have records to read again."""
    if not (again and later):
        return
    named = _some([str(each.name) for each in later])
    moved = {each.stream: each.again for each in streams if each.again}
    come_again = sum(moved.get(str(each.name), 0) for each in later)
    stays = "" if come_again else " What was acknowledged there stays so."
    waiting = sum(each.lag for each in later) + come_again
    are, waits = ("is", "waits") if len(later) == 1 else ("are", "wait")
    reads = "is" if len(again) == 1 else "are"
    yield (
        f"{named} {are} closed, and {waits} until {_some(again)} {reads} read to the end again: "
        f"{counted(waiting, 'record waits', 'records wait')} there.{stays}"
    )
    queued = sum(each.queued.retrying + each.queued.dead for each in later)
    if queued:
        yield (
            f"Of {counted(queued, 'record')} in their queues, those that failed before that end go "
            "back first, and hold up their keys there as before."
        )


def alone(group: GroupRow, streams: Sequence[StreamPlan]) -> Iterator[str]:
    """What sending single records once more means for other records."""
    if not sum(each.again for each in streams):
        return
    yield "No cursor moves: what was acknowledged behind them does not come again."
    if group.ordered:
        yield "So they come after the later records of their keys."


def left_in_queues(group: GroupRow, waiting: int) -> Iterator[str]:
    """The records that a skip does not reach: those in the retry queues of the streams."""
    if waiting:
        waits = counted(waiting, "record waits", "records wait")
        name = quote(subject_of(group))
        yield (
            f"{waits} in the retry queues of these streams, which a skip leaves: each comes when "
            f"it is due (dssctl rq ls {name}). To pass over these too: dssctl rq skip {name} --all"
        )


def left_alone(gone: Sequence[str], unnamed: Sequence[str]) -> Iterator[str]:
    """The streams that an import does not move: removed ones, and those that it does not name."""
    if gone:
        have = "has" if len(gone) == 1 else "have"
        yield f"{_some(gone)} went with retention, and {have} no record that could come again."
    if unnamed:
        stays = "stays where it is" if len(unnamed) == 1 else "stay where they are"
        yield f"{_some(unnamed)} {stays}: the import does not name {_them(unnamed)}."


def _them(named: Sequence[str]) -> str:
    return "it" if len(named) == 1 else "them"


def _some(streams: Sequence[str]) -> str:
    more = len(streams) - STREAMS_NAMED_MAX
    named = ", ".join(streams[:STREAMS_NAMED_MAX])
    return f"{named} and {more} more" if more > 0 else named
