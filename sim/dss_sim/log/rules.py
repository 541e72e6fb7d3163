"""What a start may find, held against the ledger. Pure.

========  ==========================================================================================
acked     what was answered as stored is there, in its place, byte for byte
keys      a record is read with the key with which it was sent, and without one if it had none
together  frames that were adopted at once are all there, with their row, or nothing of it is
once      nothing is there twice, and no two records have one offset
whole     every frame is whole and was sent; none was refused, and none was given up by a start
order     the frames of a producer lie in the order of their sequences
times     append times of a stream never fall, whatever the clock did
dense     every offset of a stream has its record, or is reported as damaged for a reason; a power
          loss may have taken records of topics that answer before a sync
starts    what was trimmed stays trimmed, and nothing else is
offsets   a stream does not end below an offset that was given, but for frames hit in their headers
topics    topics that were made are there, those that were removed are gone
reports   a start sets aside or calls damaged only what a crash explains
files     each segment file has its row, each row its file; nothing bad is deleted
retained  retention takes nothing that its settings keep, and leaves no whole file that they drop
repeats   a frame that is sent again gets its first answer, or is stored if it was not; for as long
          as its producer is remembered
answers   a frame is refused only for a reason; nothing is answered after the disk failed
starting  the log starts, and raises nothing, whatever was lost
settled   a second start finds nothing more to repair
========  ==========================================================================================
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from dss_core.frame import HEADER_BYTES, stamped
from dss_core.ids import StreamId
from dss_core.progress import Range
from dss_sim.log.ledger import ANONYMOUS, GONE, Frame, Ledger, Place
from dss_sim.log.stream_contents import FoundFrame, StreamFound

TOPIC_EPOCH = 1

EXPLAINED = (
    *("torn tail", "damaged bytes", "lost with the power"),
    *("it has no whole header", "no row names it"),
)
"""What a start may report after a loss of power."""


class Violation(NamedTuple):
    """A rule does not hold."""

    rule: str
    text: str

    @property
    def invariant(self) -> str:
        """The name of the rule, as the search for mutants uses it."""
        return self.rule

    def __str__(self) -> str:
        """For people."""
        return f"{self.rule}: {self.text}"


def judged(found: Mapping[StreamId, StreamFound], ledger: Ledger) -> Iterator[Violation]:
    """What is wrong with what reads of the streams gave."""
    bodies = {(frame.stream, frame.body): frame for frame in ledger.frames.values()}
    for stream, one in found.items():
        for rule, text in _Stream(stream, one, ledger, bodies).violations():
            yield Violation(rule, f"{name_of(stream)}: {text}")


def together_violations(
    found: Mapping[StreamId, StreamFound], ledger: Ledger, published: Collection[int]
) -> Iterator[Violation]:
    """Frames that were adopted at once, or their row, of which only a part is there.

    ``published`` are the first numbers of those whose row is there. Trimmed streams and bit rot
    prove nothing.
    """
    if ledger.rotten:
        return
    bodies = {(stream, frame.body) for stream, one in found.items() for frame in one.frames}
    for numbers in ledger.together:
        frames = [ledger.frames[number] for number in numbers]
        known = [
            one for one in frames if one.stream in found and not ledger.starts_max.get(one.stream)
        ]
        there = [one for one in known if (one.stream, one.body) in bodies]
        if there and len(there) < len(known):
            yield Violation("together", f"of {known} only {there} are there")
        if known and bool(there) != (numbers[0] in published):
            yield Violation("together", f"of {known} {there} are there, and their row otherwise")


def name_of(stream: StreamId) -> str:
    """The stream as it is written here."""
    return f"{stream.storage_topic_id}/{stream.partition}"


class _Stream:
    def __init__(
        self,
        stream: StreamId,
        found: StreamFound,
        ledger: Ledger,
        bodies: Mapping[tuple[StreamId, bytes], Frame],
    ) -> None:
        self._stream = stream
        self._found = found
        self._ledger = ledger
        self._bodies = bodies
        self._here: list[tuple[int, int]] = []
        """Number and base of each frame that is there, in order."""

    def violations(self) -> Iterator[tuple[str, str]]:
        """All of them."""
        yield from self._each()
        yield from self._order()
        yield from self._times()
        yield from self._missing()
        yield from self._bounds()

    def _each(self) -> Iterator[tuple[str, str]]:
        end = 0
        times_there: Counter[int] = Counter()
        for found in self._found.frames:
            if found.base < end:
                yield "once", f"offset {found.base} has two records"
            end = found.end
            frame = self._bodies.get((self._stream, found.body))
            if frame is None:
                yield "whole", f"nobody sent what lies at offset {found.base}"
                continue
            times_there[frame.number] += 1
            if times_there[frame.number] > 1:
                yield "once", f"{frame} is there too often"
            self._here.append((frame.number, found.base))
            yield from self._one(frame, found)

    def _one(self, frame: Frame, found: FoundFrame) -> Iterator[tuple[str, str]]:
        place = self._ledger.places.get(frame.number)
        if place is not None and Place(found.base, found.time_us) != place:
            yield "acked", f"{frame} is at {found.base}, not at {place}"
        why = self._ledger.refused.get(frame.number)
        if why is not None:
            yield "whole", f"{frame} is there, though {why}"
        if found.content != stamped_at(frame, found.base, found.time_us):
            yield "acked", f"{frame} is not what was sent"
        elif found.keys != frame.keys:
            yield "keys", f"{frame} was sent with {frame.keys}, and is read with {found.keys}"

    def _order(self) -> Iterator[tuple[str, str]]:
        last: defaultdict[int, int] = defaultdict(lambda: -1)
        for number, _ in self._here:
            frame = self._ledger.frames[number]
            is_behind = frame.sequence <= last[frame.producer]
            if frame.producer != ANONYMOUS and is_behind:
                yield "order", f"{frame} lies behind {last[frame.producer]}"
            last[frame.producer] = max(last[frame.producer], frame.sequence)

    def _times(self) -> Iterator[tuple[str, str]]:
        """Also checks against trimmed frames, unless a bit flipped in what tells their times."""
        ledger, start = self._ledger, self._found.start
        known = [] if ledger.rotten else ledger.places.items()
        trimmed = (
            place.time_us
            for number, place in known
            if ledger.frames[number].stream == self._stream
            and number not in ledger.at_risk
            and place.base + ledger.frames[number].records <= start
        )
        last_us = max(trimmed, default=0)
        for found in self._found.frames:
            if found.time_us < last_us:
                yield "times", f"offset {found.base} is of {found.time_us}, after {last_us}"
            last_us = found.time_us

    def _missing(self) -> Iterator[tuple[str, str]]:
        ledger, here = self._ledger, set(self._here)
        for number, place in ledger.places.items():
            frame = ledger.frames[number]
            if frame.stream != self._stream or number in ledger.hit | ledger.at_risk:
                continue
            kept = place.base + frame.records > self._found.start
            if kept and (number, place.base) not in here:
                yield "acked", f"{frame} is gone from offset {place.base}"

    def _bounds(self) -> Iterator[tuple[str, str]]:
        found, ledger, stream = self._found, self._ledger, self._stream
        low, high = ledger.starts_min.get(stream, 0), ledger.starts_max.get(stream, 0)
        if not low <= found.start <= high:
            yield "starts", f"it starts at {found.start}, not in {low}..{high}"
        nameless = any(ledger.frames[number].stream == stream for number in ledger.nameless)
        if found.end < ledger.ends_min.get(stream, 0) and not nameless:
            yield "offsets", f"it ends at {found.end}, but was at {ledger.ends_min[stream]}"
        if found.stuck_at is not None:
            yield "dense", f"a read makes no progress at {found.stuck_at}"
        if found.damaged and not self._may_be_damaged():
            yield "dense", f"called damaged: {found.damaged}"
        covered = [(frame.base, frame.end) for frame in found.frames] + found.damaged
        may_have_gaps = stream.storage_topic_id in ledger.unsynced
        gap = None if may_have_gaps else gap_in(found.start, found.end, covered)
        if gap is not None:
            yield "dense", f"offset {gap} has no record, and nobody says why"

    def _may_be_damaged(self) -> bool:
        """Whether bits rotted, or an unanswered frame before a whole one was lost."""
        ledger, topic = self._ledger, self._stream.storage_topic_id
        if ledger.rotten or self._stream in ledger.damaged or topic in ledger.unsynced:
            return True
        return any(
            frame.stream.storage_topic_id == topic and ledger.refused.get(number, GONE) == GONE
            for number, frame in ledger.frames.items()
            # A forgotten frame may have been in flight again.
            if number not in ledger.places or number in ledger.lapsed
        )


def gap_in(start: int, end: int, ranges: Collection[Range]) -> int | None:
    """The first offset of ``[start, end)`` that no range covers."""
    at = start
    for low, high in sorted(ranges):
        if low > at:
            break
        at = max(at, high)
    return at if at < end else None


def stamped_at(frame: Frame, base: int, time_us: int) -> bytes:
    """The frame as it must lie in the log."""
    head = stamped(
        frame.content,
        base_offset=base,
        append_time_us=time_us,
        topic_epoch=TOPIC_EPOCH,
        storage_topic_id=frame.stream.storage_topic_id,
    )
    return head + frame.content[HEADER_BYTES:]


def topic_violations(names: Collection[str], ledger: Ledger) -> Iterator[Violation]:
    """What is wrong with the topics that are there."""
    for name in ledger.topics.keys() - names:
        yield Violation("topics", f"{name} is gone")
    for name in set(names) - ledger.topics.keys() - ledger.maybe:
        yield Violation("topics", f"{name} was never made, or it came back")


def report_violations(reasons: Collection[str], ledger: Ledger) -> Iterator[Violation]:
    """What a start should not have reported."""
    for reason in reasons:
        if not reason.startswith(EXPLAINED) and not ledger.rotten:
            yield Violation("reports", reason)
