"""What a plan to move cursors says to people.

Invariant: numbers only from the plan of each stream. This module does not know how cursors move.
"""

from collections.abc import Iterator, Sequence

from dss_core.answers import StreamPlan
from dss_core.counted import counted
from dssd.operations.kinds.clients_named import they
from dssd.operations.plans import subject_of
from dssd.store.rows import GroupRow


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


def effects_of(streams: Sequence[StreamPlan], members: Sequence[str]) -> Iterator[str]:
    """What members and records notice of it."""
    again, passed = sum(each.again for each in streams), sum(each.passed for each in streams)
    most = "" if all(each.exact for each in streams) else "at most "
    if again:
        yield (
            f"{most}{counted(again, 'record comes', 'records come')} again, marked as redelivered, "
            "at the first attempt; records of a key come in order."
        )
    if passed:
        over = counted(passed, "record is", "records are")
        yield f"{most}{over} passed over, and handed to no member of the group."
    if members:
        yield (
            f"{they(members, 'gives', 'give')} these streams back and "
            f"{'gets' if len(members) == 1 else 'get'} them anew, without being disconnected. What "
            "is out of them is settled first, or comes again."
        )
    for each in streams:
        if each.clamped:
            yield f"{each.stream} begins at {each.target}: retention took what lies before."
