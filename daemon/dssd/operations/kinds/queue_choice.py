"""Which entries of the queues of a group a change names.

A plan names the found entries by their offsets in the queue of each stream, so later entries are
never included. Invariants: a plan reads a bounded part of the queues and names a bounded number of
ranges, the oldest first; a change that cannot be undone must name its entries, or say that it means
all. This module must not know what becomes of the entries.
"""

from collections.abc import Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from shlex import quote

from dss_core.changes import ChosenEntries, LaneRanges
from dss_core.errors import IllegalArgument, NothingChosen, StreamNotRead
from dss_core.ids import StreamName
from dss_core.progress import Range, Ranges, clipped, normalised, total
from dss_core.times import text_of_us
from dssd.leaders.lag import GroupSurvey, StreamSurvey
from dssd.operations.plans import subject_of
from dssd.queues.choosing import Takes, meant_in
from dssd.queues.looking import ALL, Choice, EntryLook, Lane
from dssd.store.rows import GroupRow

CHOICE_RANGES_MAX = 10_000
"""How many ranges of entries one operation names: 160 KB in rows, and some hundred in a plan."""

CHOICE_BYTES_MAX = 512 << 20
"""How much a plan reads to choose entries by error or key: over a million entries of usual size, in
some seconds, for which `dssctl` waits. The same command takes the rest afterwards."""


@dataclass(slots=True)
class ChoiceBudget:
    """What one plan may read."""

    bytes: int = CHOICE_BYTES_MAX

    @property
    def spent(self) -> bool:
        """Whether it may read no more."""
        return self.bytes <= 0


@dataclass(frozen=True, slots=True)
class Chosen:
    """Entries of one stream."""

    stream: StreamSurvey
    ranges: Ranges
    keys: int = 0
    """The number of whole keys, if they were counted."""
    along: int = 0
    """How many entries were added because of their keys."""

    @property
    def count(self) -> int:
        """How many they are."""
        return total(self.ranges)

    @property
    def lane(self) -> LaneRanges:
        """The ranges, as in a resolved change."""
        stream = self.stream.view.stream
        return LaneRanges(str(self.stream.name), stream.storage_topic_id, self.ranges)


def check_has_queues(group: GroupRow) -> None:
    """Refuse a plain group.

    Raises:
        IllegalArgument: it is one.
    """
    if not group.max_deliver:
        command = f"dssctl groups edit {quote(subject_of(group))} --max-deliver 5"
        rule = f"its records come again for ever, and none is dead, until {command}"
        raise IllegalArgument(argument=f"the group {subject_of(group)}", rule=rule)


def check_reads(group: GroupRow, survey: GroupSurvey, change: ChosenEntries) -> None:
    """Refuse a stream that the group does not read.

    Raises:
        StreamNotRead: it does not.
    """
    known = {str(each.name) for each in survey.streams}
    if change.stream and str(StreamName.parse(change.stream)) not in known:
        raise StreamNotRead(group=subject_of(group), stream=change.stream)


def check_says_which(
    change: ChosenEntries, verb: str, noun: str, command: str, *, everything: bool
) -> None:
    """Refuse a change that neither names entries nor says that it means all.

    Raises:
        NothingChosen: it does neither.
    """
    if not (everything or change.lanes or choice_of(change) != ALL):
        group = quote(change.group)
        told = f"dssctl {command} {group} --key KEY, or --all"
        raise NothingChosen(verb=verb, noun=noun, group=change.group, command=told)


def choice_of(change: ChosenEntries) -> Choice:
    """The choice that a change makes.

    Raises:
        IllegalArgument: an offset without a stream.
    """
    stream = StreamName.parse(change.stream) if change.stream else None
    if change.offset is not None and stream is None:
        raise IllegalArgument(argument="offset", rule="it needs a stream")
    return Choice(
        change.error,
        change.key,
        stream,
        change.offset,
        change.client_id,
        change.start_us,
        change.end_us,
    )


async def chosen_of(
    look: EntryLook,
    group: GroupRow,
    streams: dict[str, StreamSurvey],
    choice: Choice,
    level: int,
    takes: Takes | None = None,
) -> list[Chosen]:
    """The chosen entries, the oldest of each stream first, within the bounds."""
    chosen: list[Chosen] = []
    room = CHOICE_RANGES_MAX
    for each in streams.values():
        has_room = room > 0 and not look.budget.spent
        if has_room and choice.may_be_in(each.name, ordered=group.ordered):
            ranges = (await _ranges(look, group, each, choice, level, takes))[:room]
            room -= len(ranges)
            chosen += [Chosen(each, ranges)] if ranges else []
    return chosen


async def _ranges(
    look: EntryLook,
    group: GroupRow,
    stream: StreamSurvey,
    choice: Choice,
    level: int,
    takes: Takes | None,
) -> Ranges:
    queue = stream.view.queues[level - 1]
    # In an ordered group, a lane may also have entries of earlier streams.
    has_others = group.ordered and stream.name.ordinal > 0
    own = ALL if has_others else Choice(stream=stream.name)
    if takes is None and choice in (ALL, own):
        return look.waiting(queue)
    ranges: list[Range] = []
    lane = Lane(stream.name.topic, level, queue)
    meant = partial(meant_in, choice, takes or (lambda _: True))
    async with aclosing(look.pieces(lane, meant, key=choice.key)) as pieces:
        async for _, found in pieces:
            _append(ranges, found or ())
            if len(ranges) >= CHOICE_RANGES_MAX:
                break
    return tuple(ranges)


def _append(ranges: list[Range], more: Ranges) -> None:
    """Add ranges that lie behind those already there."""
    if ranges and more and ranges[-1][1] == more[0][0]:
        ranges[-1] = ranges[-1][0], more[0][1]
        more = more[1:]
    ranges += more


def still_there(
    look: EntryLook,
    group: GroupRow,
    streams: dict[str, StreamSurvey],
    lanes: Sequence[LaneRanges],
    level: int,
) -> list[Chosen]:
    """The entries that a plan named, as far as they are still in the queues.

    Raises:
        IllegalArgument: it names too much.
        StreamNotRead: a stream is gone.
    """
    chosen: list[Chosen] = []
    if sum(len(lane.ranges) for lane in lanes) > CHOICE_RANGES_MAX:
        rule = f"at most {CHOICE_RANGES_MAX:,} ranges at a time"
        raise IllegalArgument(argument="the change", rule=rule)
    for lane in lanes:
        stream = streams.get(lane.stream)
        if stream is None or stream.view.stream.storage_topic_id != lane.storage_topic_id:
            raise StreamNotRead(group=subject_of(group), stream=lane.stream)
        waiting = look.waiting(stream.view.queues[level - 1])
        named = normalised(lane.ranges)
        ranges = normalised(each for span in named for each in clipped(waiting, *span))
        chosen += [Chosen(stream, ranges)] if ranges else []
    return chosen


def names_some(change: ChosenEntries) -> bool:
    """Whether the change may leave entries of a stream out; otherwise its keys are whole anyway."""
    choice = choice_of(change)
    return choice not in (ALL, Choice(stream=choice.stream))


def is_cut(look: EntryLook, chosen: Sequence[Chosen]) -> bool:
    """Whether the bounds may have cut the choice."""
    return look.budget.spent or sum(len(each.ranges) for each in chosen) >= CHOICE_RANGES_MAX


def told_of_choice(change: ChosenEntries) -> str:
    """The choice in words, for people."""
    if change.lanes:
        return "what a plan named before"
    return ", ".join(_named(change)) or "what was named"


def _named(change: ChosenEntries) -> Iterator[str]:
    key = "" if change.key is None else change.key.decode(errors="backslashreplace")
    place = change.stream if change.offset is None else f"{change.stream}@{change.offset}"
    what = "stream" if change.offset is None else "record"
    told = {"error": change.error, "key": key, what: place, "member": change.client_id}
    yield from (f"of the {what} {named}" for what, named in told.items() if named)
    if change.start_us is not None:
        yield f"from {text_of_us(change.start_us)} on"
    if change.end_us is not None:
        yield f"from before {text_of_us(change.end_us)}"


def none_of(counted_text: str, change: ChosenEntries) -> str:
    """Why nothing was chosen."""
    return f"none of its {counted_text} is {told_of_choice(change)}"
