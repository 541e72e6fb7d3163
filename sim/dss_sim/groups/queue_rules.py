"""The fate of failed records, in groups that have queues: docs/delivery.md.

A failed record is in one place at a time: in its stream, or as one entry of a queue, which names
its previous place, its *source*. So each record has one way through the levels, link by link:

    Q1  a source has one entry, so no record is in two places
    Q2  once a lane was taken over, nothing of its holders before becomes durable
    Q3  where a record has left, it is not handed out any more; nor is an entry of what was durably
        acknowledged before it
    Q4  an entry is not handed out before its time, unless an operator brought it forward
    Q5  a dead letter has the error that was given, and as many attempts as a record may have: at
        least all of them, unless it was rejected; each grant that ended in doubt may add one, and
        queues that were full any number
    Q6  what a commit calls applied has its sources acknowledged in that commit
    Q7  a redrive brings back each dead letter that it names, once, and no other   (at `Ended`)
    Q9  what goes to another lane is the entry that it was: its time, its attempts, its error,
        but for what an operator asked for
    Q10 a record is given up only where an operator said so
    Q11 an operation that passes over or gives up what waits is done once none of that waits, nor
        what was made of it in its queue meanwhile

Progress over an unacknowledged source without an entry breaks S2 of `checker`.
"""

from collections import defaultdict

from dss_core.lane import DEAD, RETRY
from dss_core.progress import Progress
from dss_sim.groups.history import (
    AckDurable,
    Acked,
    Committed,
    Errand,
    ErrandEnded,
    HandedOut,
    Key,
    LaneTaken,
    Nakked,
    Queued,
    QueuesBorn,
    Redriven,
)
from dss_sim.groups.violation import Violation
from dssd.machines.delivery.causes import DIED, FOLLOWS, GIVEN_UP, NO_KEY, REDRIVEN
from dssd.machines.queues import BURY, RETRY_LATER, RETRY_NOW, SKIP

GroupStream = tuple[str, str]
REFUSALS = ("refused", "rejected")
UNCHARGED = (FOLLOWS, NO_KEY)


class _Lane:
    """A stream and its queues."""

    __slots__ = ("are_small", "blocks", "epoch", "max_deliver", "names", "ordered")

    def __init__(self, born: QueuesBorn) -> None:
        self.names = born.stream, born.retry, born.dead
        self.max_deliver = born.max_deliver
        self.are_small = born.are_small
        self.ordered, self.blocks = born.ordered, born.blocks
        self.epoch = 0
        """The grant epoch of its last takeover."""


class _Level:
    """One level of a lane."""

    __slots__ = (
        "acked", "applied", "asked", "buried", "discarded", "durable", "earlier", "entries",
        "from_queue", "hurried", "left", "naks", "owed", "passed", "redriven", "stored", "void",
        "whole_keys",
    )  # fmt: skip

    def __init__(self) -> None:
        self.entries: list[Queued] = []
        """The entries, by offset."""
        self.left: dict[int, Queued] = {}
        """The entries that its records became."""
        self.earlier: defaultdict[int, list[Queued]] = defaultdict(list)
        """Earlier entries of records that an operator reopened while they waited in queues."""
        self.from_queue: set[int] = set()
        """Records reopened while an entry was to come by itself: the stream passes over them."""
        self.acked: set[int] = set()
        """Offsets that users acknowledged."""
        self.passed: set[int] = set()
        """For a stream: offsets that operators passed over, and not reopened since."""
        self.void: set[int] = set()
        """Entries left by an unfinished re-homing."""
        self.durable: set[int] = set()
        self.naks: dict[int, Nakked] = {}
        self.stored = Progress(0)
        self.applied = 0
        self.redriven: set[int] = set()
        self.owed: set[int] = set()
        """The redriven ones, without those of cancelled redrives."""
        self.discarded: set[int] = set()
        self.whole_keys: set[Key] = set()
        self.buried: set[int] = set()
        self.hurried: set[int] = set()
        """For a retry queue: entries that operators buried, and hurried."""
        self.asked: dict[int, set[int]] = {}
        """Entries that unfinished operations are to pass over or bury."""

    def follows(self, event: Queued) -> bool:
        """Whether it never failed, and is of a key that comes back whole."""
        entry = self.entries[event.source_offset]
        return not entry.attempt and entry.key in self.whole_keys

    def last_made_of(self, offset: int) -> int:
        """The present entry of a record in this queue, or its last one."""
        while offset in self.left and self.left[offset].stream == self.entries[offset].stream:
            offset = self.left[offset].offset
        return offset

    def means(self, named: set[int], offset: int) -> bool:
        """Whether an entry is named, or was made of a named one."""
        entry = self.entries[offset]
        is_made_here = 0 <= entry.source_offset < len(self.entries)
        is_own = is_made_here and self.left.get(entry.source_offset) is entry
        return offset in named or (is_own and entry.source_offset in named)


class QueueRules:
    """Takes the events of groups with queues, and ignores others."""

    def __init__(self) -> None:
        self._lanes: dict[GroupStream, _Lane] = {}
        """The lanes, by each of their levels."""
        self._levels: defaultdict[GroupStream, _Level] = defaultdict(_Level)
        self._applied: list[tuple[GroupStream, Committed]] = []
        """For the commit that is being reported: its applied ends."""
        self._moves: list[tuple[str, str, set[int], set[int]]] = []
        """For the same commit: group, stream, and its reopened and passed offsets."""
        self._has_rows = False
        """Rows of it were reported."""

    def level(self, group: str, stream: str) -> int:
        """The level of a stream; 0 also if the group has no queues."""
        lane = self._lanes.get((group, stream))
        return 0 if lane is None else lane.names.index(stream)

    def has_left(self, group: str, stream: str, offset: int) -> bool:
        """Whether the record is an entry of a queue now, or was one when it was reopened."""
        if (group, stream) not in self._lanes:
            return False
        is_left = offset in self._levels[group, stream].left
        return is_left or self._comes_from_queue(group, stream, offset)

    def is_done(self, group: str, stream: str, offset: int) -> bool:
        """Whether an entry may be acknowledged: it has left, or its source was acknowledged."""
        level = self._levels[group, stream]
        known = level.left, level.acked, level.discarded, level.void
        if any(offset in each for each in known):
            return True
        if self._comes_from_queue(group, stream, offset):
            return True
        if (group, stream) not in self._lanes or offset >= len(level.entries):
            return False
        if level.means(level.discarded, offset):
            return True
        entry = level.entries[offset]
        if self._is_left_over(group, stream, entry):
            self._levels[group, entry.source].left.pop(entry.source_offset, None)
            return True
        return self._is_acked(group, entry.source, entry.source_offset)

    def _is_left_over(self, group: str, stream: str, entry: Queued) -> bool:
        """Whether it was re-homed by an unfinished re-homing: its source is still in its place."""
        if self._lanes[group, stream] is self._lanes[group, entry.source]:
            return False
        return not self._levels[group, entry.source].stored.is_acked(entry.source_offset)

    def _is_acked(self, group: str, stream: str, offset: int) -> bool:
        """Whether a user acknowledged the record, here or at an earlier place."""
        level = self._levels[group, stream]
        if offset in level.acked:
            return True
        if not self.level(group, stream):
            return False
        entry = level.entries[offset]
        return self._is_acked(group, entry.source, entry.source_offset)

    def owed(self) -> list[tuple[str, str, int, int]]:
        """Group, stream, offset and end of dead letters that are to come back, and have not."""
        return [
            (*place, offset, len(level.entries))
            for place, level in self._levels.items()
            for offset in sorted(level.owed)
            if offset not in level.left and not level.stored.is_acked(offset)
        ]

    def forget(self, group: str, stream: str) -> tuple[str, ...]:
        """The stream is gone, and its queues with it; returns their names."""
        lane = self._lanes.get((group, stream))
        names = () if lane is None else lane.names[1:]
        for level in names:
            self._levels[group, level].owed.clear()
            self._levels[group, level].asked.clear()
        return names

    def origin_of(self, group: str, stream: str, offset: int) -> tuple[str, int]:
        """The record and the stream that an entry is of."""
        while self.level(group, stream):
            entry = self._levels[group, stream].entries[offset]
            stream, offset = entry.source, entry.source_offset
        return stream, offset

    def main_of(self, group: str, stream: str) -> str:
        """The stream that it is a level of."""
        return self._lanes[group, stream].names[0]

    def is_ordered(self, group: str, stream: str) -> bool:
        """Whether the stream is a level of a lane with the order of keys."""
        lane = self._lanes.get((group, stream))
        return lane is not None and lane.ordered

    def waits_since_before(self, group: str, stream: str, offset: int) -> bool:
        """Whether an operator reopened the record of a stream while an earlier entry still holds up
        its key."""
        return any(
            not self.is_settled(group, entry.stream, entry.offset)
            for entry in self._levels[group, stream].earlier.get(offset, ())
        )

    def is_settled(self, group: str, stream: str, offset: int) -> bool:
        """Whether a record of a lane no longer holds up later ones of its key: a user acknowledged
        it, an operator gave it up, or it is dead where dead letters do not block."""
        lane = self._lanes[group, stream]
        while True:
            level = self._levels[group, stream]
            # Dead letters that did not block come back out of order.
            is_dead = self.level(group, stream) == DEAD
            if offset in level.acked or (is_dead and not lane.blocks):
                return True
            if offset not in level.left and self._comes_from_queue(group, stream, offset):
                return not self.waits_since_before(group, stream, offset)
            if offset not in level.left:
                is_given_up = offset in level.discarded
                if self.level(group, stream) == RETRY:
                    is_given_up = level.means(level.discarded, offset)
                return is_given_up or level.stored.is_acked(offset)
            entry = level.left[offset]
            stream, offset = entry.stream, entry.offset

    # Events

    def born(self, event: QueuesBorn) -> None:
        """A lane begins."""
        lane = _Lane(event)
        self._lanes |= dict.fromkeys(((event.group, name) for name in lane.names), lane)

    def moved(self, group: str, stream: str, reopened: set[int], passed: set[int]) -> None:
        """An operator reopened records of a stream, and passed over others, by a commit whose rows
        are reported next: these rows were reported before the move."""
        if (group, stream) in self._lanes:
            self._moves.append((group, stream, reopened, passed))

    def _move(self, group: str, stream: str, reopened: set[int], passed: set[int]) -> None:
        """Reopened records that wait in queues come from there; entries that nobody has reported
        are done like their records."""
        level = self._levels[group, stream]
        level.acked -= reopened
        level.durable -= reopened
        level.passed = (level.passed | passed) - reopened
        level.from_queue -= reopened
        for offset in (reopened | passed).intersection(level.left):
            entry = level.left[offset]
            queue = self._levels[group, entry.stream]
            is_reported = entry.offset < queue.applied
            if offset in passed and not is_reported:
                queue.discarded.add(entry.offset)
            elif offset in reopened and is_reported:
                level.earlier[offset].append(level.left.pop(offset))
        for offset in reopened.intersection(level.earlier):
            self._look_at_earlier(group, level, offset)

    def _look_at_earlier(self, group: str, level: _Level, offset: int) -> None:
        """Which entries of a reopened record are still to come."""
        last = {each: self._last(group, each) for each in level.earlier.pop(offset)}
        left = [
            each
            for each, end in last.items()
            if not self._levels[group, end.stream].stored.is_acked(end.offset)
        ]
        if left:
            level.earlier[offset] = left
        if any(not self._stays_dead(group, last[each]) for each in left):
            level.from_queue.add(offset)

    def _comes_from_queue(self, group: str, stream: str, offset: int) -> bool:
        """Whether an operator reopened the record while an entry of it waited, which comes by
        itself or will; so the stream passes over the record."""
        level = self._levels[group, stream]
        earlier = level.earlier.get(offset, ())
        is_known = offset in level.from_queue
        return is_known or any(
            not self._stays_dead(group, self._last(group, each)) for each in earlier
        )

    def _last(self, group: str, entry: Queued) -> Queued:
        """The last entry made of an entry."""
        while entry.offset in (left := self._levels[group, entry.stream].left):
            entry = left[entry.offset]
        return entry

    def _stays_dead(self, group: str, entry: Queued) -> bool:
        """Whether it is a dead letter that does not block."""
        is_dead = self.level(group, entry.stream) == DEAD
        return is_dead and not self._lanes[group, entry.stream].blocks

    def taken(self, event: LaneTaken) -> None:
        """A lane is taken over."""
        lane = self._lanes.get((event.group, event.stream))
        if lane is not None:
            lane.epoch = max(lane.epoch, event.grant_epoch)

    def queued(self, event: Queued, *, is_disturbed: bool) -> None:
        """An entry is durable.

        Raises:
            Violation: Q1, Q2, Q5, Q7, Q9, Q10: it should not be there, or has wrong fields.
        """
        lane = self._lanes[event.group, event.stream]
        level, source = self._places(event)
        if event.offset != len(level.entries):
            raise Violation("S8", f"the queue ended at {len(level.entries)}: {event}")
        if event.source_offset in source.left:
            other = source.left[event.source_offset]
            if not self._goes_back_instead(event, other):
                raise Violation("Q1", f"its source has an entry, {other}: {event}")
            self._levels[event.group, other.stream].void.add(other.offset)
        of = self._lanes[event.group, event.source]
        if event.grant_epoch < of.epoch and not self._is_copy(event):
            raise Violation("Q2", f"the lane was taken over by {of.epoch}: {event}")
        if of is not lane:
            self._check_rehomed(event, source)
        elif event.stream == lane.names[2]:
            self._check_dead(event, lane, source, is_disturbed=is_disturbed)
        is_back = event.source == of.names[2] and event.stream != lane.names[2]
        if is_back and not (event.source_offset in source.redriven or source.follows(event)):
            raise Violation("Q7", f"nobody redrives it: {event}")
        level.entries.append(event)
        source.left[event.source_offset] = event
        if event.source_offset in source.passed:
            level.discarded.add(event.offset)

    def _goes_back_instead(self, event: Queued, other: Queued) -> bool:
        """Whether its re-homing was not finished, and the entry goes back instead."""
        to, of, on = (
            int(self.main_of(event.group, each).rsplit("/", 2)[1])
            for each in (event.stream, event.source, other.stream)
        )
        return to < of < on

    def _check_rehomed(self, event: Queued, source: _Level) -> None:
        """Check that it has the fields of its source entry, except for deaths of clients, and
        changes by operators."""
        before = source.entries[event.source_offset]
        if event.cause == GIVEN_UP and before.cause != GIVEN_UP:
            self._check_given_up(event, source)
            return
        is_hurried = event.source_offset in source.hurried and event.due_us <= before.due_us
        due_us = event.due_us if is_hurried else before.due_us
        same = before.cause, before.attempt, due_us, before.error, before.key
        now = event.cause, event.attempt, event.due_us, event.error, event.key
        if same != now and event.cause not in (DIED, REDRIVEN):
            raise Violation("Q9", f"it was {before}: {event}")

    def _check_given_up(self, event: Queued, source: _Level) -> None:
        if not source.means(source.buried, event.source_offset):
            raise Violation("Q10", f"nobody gave it up: {event}")

    def _is_copy(self, event: Queued) -> bool:
        """Whether it differs only in its place, and so names the last client too."""
        level, source = self._places(event)
        return source is level and source.entries[event.source_offset].attempt == event.attempt

    def _places(self, event: Queued) -> tuple[_Level, _Level]:
        return self._levels[event.group, event.stream], self._levels[event.group, event.source]

    def _check_dead(
        self, event: Queued, lane: _Lane, source: _Level, *, is_disturbed: bool
    ) -> None:
        nak = source.naks.get(event.source_offset)
        if event.cause in REFUSALS:
            if nak is None or nak.error != event.error:
                raise Violation("Q5", f"the error that was given is {nak}: {event}")
            if nak.rejected != (event.cause == "rejected"):
                raise Violation("Q5", f"refused as {nak}: {event}")
        if event.cause == GIVEN_UP:
            self._check_given_up(event, source)
            return
        if event.cause in UNCHARGED:
            return
        least = 1 if event.cause == "rejected" else lane.max_deliver
        most = lane.max_deliver + (event.grant_epoch if is_disturbed else 0)
        if event.attempt < least or (event.attempt > most and not lane.are_small):
            raise Violation("Q5", f"dead after other attempts than {least} to {most}: {event}")

    def nakked(self, event: Nakked) -> None:
        """User code refused a record."""
        if (event.group, event.stream) in self._lanes:
            self._levels[event.group, event.stream].naks[event.offset] = event

    def acked(self, event: Acked) -> None:
        """User code acknowledged a record."""
        if (event.group, event.stream) in self._lanes:
            self._levels[event.group, event.stream].acked.add(event.offset)

    def durably_acked(self, event: AckDurable) -> None:
        """User code was told that its acks survive anything."""
        if (event.group, event.stream) in self._lanes:
            level = self._levels[event.group, event.stream]
            offsets = (offset for part in event.acked for offset in range(*part))
            level.durable.update(offset for offset in offsets if offset not in level.left)

    def handed_out(self, event: HandedOut, early_us: int) -> None:
        """User code got a record; clocks may differ by ``slack_us``.

        Raises:
            Violation: Q3, Q4: it is elsewhere, done, or not due.
        """
        if (event.group, event.stream) not in self._lanes:
            return
        level = self._levels[event.group, event.stream]
        if event.offset in level.left:
            raise Violation("Q3", f"it is elsewhere, as {level.left[event.offset]}: {event}")
        if event.offset in level.void:
            raise Violation("Q3", f"what it was made of went elsewhere: {event}")
        if self.waits_since_before(event.group, event.stream, event.offset):
            waiting = level.earlier[event.offset]
            raise Violation("Q3", f"it waits in a queue, as {waiting}: {event}")
        if not self.level(event.group, event.stream):
            return
        entry = level.entries[event.offset]
        if entry.source_offset in self._levels[event.group, entry.source].durable:
            raise Violation("Q3", f"what {entry} was made of was acknowledged: {event}")
        if event.at_us + early_us < entry.due_us and event.offset not in level.hurried:
            raise Violation("Q4", f"it is due at {entry.due_us} us: {event}")

    def committed(self, event: Committed) -> None:
        """The store has this state of a level; the rest of the commit is reported next."""
        place = event.group, event.stream
        self._has_rows = True
        if place in self._lanes:
            self._levels[place].stored = Progress(event.floor, event.ranges)
            if event.stopped:
                self._levels[place].owed.clear()
            if event.applied_end:
                self._applied.append((place, event))

    def commit_told(self) -> None:
        """The whole commit was reported.

        Raises:
            Violation: Q6: it calls an entry applied that is not.
        """
        applied, self._applied = self._applied, []
        for (group, stream), event in applied:
            level = self._levels[group, stream]
            if event.applied_end > len(level.entries):
                raise Violation("Q6", f"there are {len(level.entries)} entries: {event}")
            again = {(*at[:2], each) for at in self._moves for each in at[2]}
            for entry in level.entries[level.applied : event.applied_end]:
                if (group, entry.source, entry.source_offset) in again:
                    continue
                if not self._levels[group, entry.source].stored.is_acked(entry.source_offset):
                    raise Violation("Q6", f"{entry} is not applied: {event}")
            level.applied = max(level.applied, event.applied_end)
        if self._has_rows:
            moves, self._moves, self._has_rows = self._moves, [], False
            for move in moves:
                self._move(*move)

    def errand(self, event: Errand) -> None:
        """An operator's errand for entries of a retry queue is durable."""
        level = self._levels[event.group, event.stream]
        named = {at for part in event.ranges for at in range(*part)}
        if event.what == RETRY_LATER:
            level.hurried -= named
            return
        {SKIP: level.discarded, BURY: level.buried, RETRY_NOW: level.hurried}[event.what] |= named
        if event.what != RETRY_NOW:
            level.asked[event.number] = named

    def errand_ended(self, event: ErrandEnded) -> None:
        """An operation is called done.

        Raises:
            Violation: Q11: an entry of it still waits.
        """
        for (group, stream), level in self._levels.items():
            asked = level.asked.pop(event.number, ()) if group == event.group else ()
            for offset in asked:
                last = level.last_made_of(offset)
                if last not in level.left and not level.stored.is_acked(last):
                    raise Violation("Q11", f"{offset} of {stream} waits, at {last}: {event}")

    def redriven(self, event: Redriven) -> None:
        """An operator redrives dead letters, and discards others."""
        level = self._levels[event.group, event.stream]
        level.owed |= {at for part in event.ranges for at in range(*part)}
        level.redriven |= level.owed
        if event.whole_keys:
            named = (each for each in level.entries if each.offset in level.owed)
            level.whole_keys |= {each.key for each in named if each.key is not None}
        level.discarded |= {at for part in event.discarded for at in range(*part)}
