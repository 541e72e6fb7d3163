"""The judge of a history: a pure program over events, one at a time.

It knows nothing of how DSS works, only its promises. Names are those of
docs/proof/groups-simulator.md. ``python -m dss_sim.groups.checker FILE`` judges a history in a
file: exit code 0 if every invariant holds, else 1, with the violation on stdout.

    I4  a record that the log has is handed out, once all has healed       (at `Ended`);
        what is damaged, or went with the machine, it has no more
    I5  exactly once, where nothing was disturbed                          (at `Ended`);
        and without a mark, since a mark means that the record may have been seen; of a grant
        that was open at a takeover, the rows do not say how far it went
    I6  first hand-outs of a stream come in order; in a group by key, those of each key do; but
        what so many clients vanished with that it comes alone, comes later
    S2  stored progress never shrinks, stays below the end, and holds only what users acknowledged
    S3  leader epochs and grant epochs only rise, a grant is durable before it hands out, and has
        one holder
    S4  a record that comes again is marked, and no older grant hands out after a newer one
    S7  the log keeps what it has, and nothing is handed out that it does not have, or that the
        filter rejects; what a producer is told is stored lies there once (`log_rules`)
    S20 a record is handed out with the key that it was appended with; absent is a key of its own
    S8  offsets are given once, without a gap, in the order of each producer's sequences
    S26 what a producer sends of a key is there once and in order, over all storage topics
    I17 what was durably acknowledged when a stream was granted does not come under that grant
    S14 what a group did not acknowledge is passed only where that may be (`damage_rules`)
    S10 an attempt counts hand-outs that there were, and under one grant all of them
    A1  what a user was told is durable comes never again
    Q1 to Q7: what becomes of records that fail, in groups that have queues (`queue_rules`)
    K1, K2: the order of keys, in groups that are ordered (`key_rules`)
    S21, S22, S23: what operators make of cursors (`cursor_rules`)
    L2  progress reaches the end of every stream, once all has healed,     (at `Ended`);
        or what its group stays before because it cannot be read
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from dss_core.lane import DEAD, MAIN, RETRY
from dss_core.progress import Progress, complement
from dss_sim.groups.checked_stream import CheckedStream
from dss_sim.groups.cursor_rules import note_handed_out, take_move
from dss_sim.groups.damage_rules import DamageRules
from dss_sim.groups.history import (
    AckDurable,
    Acked,
    Appended,
    Born,
    Committed,
    Damaged,
    Declared,
    Destroyed,
    Disturbed,
    Ended,
    Errand,
    ErrandEnded,
    Event,
    Gone,
    HandedOut,
    Key,
    LaneTaken,
    Led,
    Lost,
    Moved,
    Nakked,
    OutOfTime,
    Passed,
    Published,
    Queued,
    QueuesBorn,
    Redriven,
    Stored,
    Unpublished,
    Unreadable,
    read_history,
)
from dss_sim.groups.key_rules import KeyRules
from dss_sim.groups.log_rules import LogRules
from dss_sim.groups.queue_rules import QueueRules
from dss_sim.groups.violation import Violation
from dssd.limits import ISOLATE_AFTER_DOUBTS
from dssd.machines.queues import RETRY_NOW

MEMBER_FAULTS = frozenset({"kill_client", "cut_pipe"})
"""The sessions of members that vanish live on, so they count the records that were out. If the
session dies too, or its reports are lost, nobody is charged."""
DELAY_US_MAX = 8_000_000
EARLY_US_MAX = 100_000
"""Times of rests are rounded, and a host learns the wall clock's time only now and then."""

__all__ = ["Checker", "Violation", "main"]


class _Group:
    __slots__ = (
        "by_key", "declared", "destroyed", "every", "leader_epoch", "on_damage", "streams",
    )  # fmt: skip

    def __init__(self) -> None:
        self.declared = False
        self.every = 0
        self.by_key = False
        self.on_damage = "pass"
        self.leader_epoch = 0
        self.destroyed = False
        self.streams: defaultdict[str, CheckedStream] = defaultdict(lambda: CheckedStream(0))


class Checker:
    """Takes events in order."""

    def __init__(self, clock_skew: float = 0.0) -> None:
        self._clock_skew = clock_skew
        """The share by which a host's clock may run ahead or behind."""
        self._groups: defaultdict[str, _Group] = defaultdict(_Group)
        self._log = LogRules()
        self._ends = self._log.ends
        self._damage = DamageRules()
        self._queues = QueueRules()
        self._keys = KeyRules(self._queues, self._log)
        self._gone: set[str] = set()
        self._disturbed = False
        self._charges_nobody = False
        self._refused = False

    def take(self, event: Event) -> None:
        """Judge one event.

        Raises:
            Violation: an invariant does not hold.
        """
        if not isinstance(event, Committed):
            self._queues.commit_told()
        _TAKERS[type(event)](self, event)

    def take_all(self, events: Iterable[Event]) -> None:
        """Judge a whole history.

        Raises:
            Violation: an invariant does not hold.
        """
        for event in events:
            self.take(event)

    def unsettled(self) -> list[tuple[str, str, int, int]]:
        """Group, stream, floor and end, of the streams whose progress has not reached the end."""
        return [
            (name, stream, lent.stored.floor, end)
            for name, group in self._groups.items()
            if not group.destroyed and group.declared
            for stream, lent in group.streams.items()
            if stream not in self._gone
            and self._queues.level(name, stream) != DEAD
            and not self._waits_for_its_stream(name, stream, group)
            and not self._waits_for_another(name, stream, group)
            and lent.stored.floor < (end := self._reachable(stream, group, lent))
        ] + self._queues.owed()

    def _waits_for_its_stream(self, name: str, stream: str, group: _Group) -> bool:
        """Whether it is the retry queue of an ordered group that stalls at damage: records behind
        the damage, which nobody has read, may have its keys."""
        if self._queues.level(name, stream) != RETRY or not self._queues.is_ordered(name, stream):
            return False
        main = self._queues.main_of(name, stream)
        return self._reachable(main, group, group.streams[main]) < self._ends.get(main, 0)

    def _waits_for_another(self, name: str, stream: str, group: _Group) -> bool:
        """Whether it is a level of an ordered lane of a later storage topic, while a stream of an
        earlier one stalls at damage: it may stay closed for ever."""
        if not self._queues.is_ordered(name, stream):
            return False
        topic, ordinal, _ = self._queues.main_of(name, stream).rsplit("/", 2)
        return any(
            self._reachable(other, group, lent) < self._ends.get(other, 0)
            for other, lent in group.streams.items()
            if not self._queues.level(name, other)
            and other.rsplit("/", 2)[0] == topic
            and int(other.rsplit("/", 2)[1]) < int(ordinal)
        )

    def _reachable(self, stream: str, group: _Group, lent: CheckedStream) -> int:
        """The progress when all readable records are consumed."""
        end = self._ends.get(stream, 0)
        stop = self._damage.stays_before(group.on_damage, stream, lent.start, lent.stored)
        return end if stop is None else min(stop, end)

    # Events

    def _declared(self, event: Declared) -> None:
        group = self._groups[event.group]
        group.declared = True
        group.every, group.by_key = event.every, event.by_key
        group.on_damage = event.on_damage
        for stream, start in event.starts:
            group.streams[stream] = CheckedStream(start)

    def _born(self, event: Born) -> None:
        self._groups[event.group].streams[event.stream] = CheckedStream(0)

    def _destroyed(self, event: Destroyed) -> None:
        group = self._groups[event.group]
        group.destroyed = True
        for stream in list(group.streams):
            self._queues.forget(event.group, stream)

    def _stream_gone(self, event: Gone) -> None:
        self._gone.add(event.stream)
        for name in self._groups:
            self._gone.update(self._queues.forget(name, event.stream))

    def _queues_born(self, event: QueuesBorn) -> None:
        self._queues.born(event)

    def _queued(self, event: Queued) -> None:
        self._queues.queued(event, is_disturbed=self._disturbed)
        self._keys.queued(event)
        self._log.appended(Appended(event.at_us, event.stream, event.offset + 1, (event.key,)))

    def _lane_taken(self, event: LaneTaken) -> None:
        self._queues.taken(event)

    def _redriven(self, event: Redriven) -> None:
        self._queues.redriven(event)

    def _errand(self, event: Errand) -> None:
        self._queues.errand(event)
        if event.what == RETRY_NOW:
            lent = self._groups[event.group].streams[event.stream]
            for offset in (at for part in event.ranges for at in range(*part)):
                lent.rests.pop(offset, None)
                lent.asked.pop(offset, None)

    def _errand_ended(self, event: ErrandEnded) -> None:
        self._queues.errand_ended(event)

    def _appended(self, event: Appended) -> None:
        self._log.appended(event)

    def _stored(self, event: Stored) -> None:
        self._log.stored(event)

    def _published(self, event: Published) -> None:
        self._log.published(event)

    def _unpublished(self, event: Unpublished) -> None:
        self._log.unpublished(event)

    def _damaged(self, event: Damaged) -> None:
        self._log.damaged(event)
        self._damage.damaged(event)
        self._note_hole(event)

    def _lost(self, event: Lost) -> None:
        self._log.lost(event)
        self._damage.lost(event)
        self._note_hole(event)

    def _unreadable(self, event: Unreadable) -> None:
        self._damage.unreadable(event)

    def _passed(self, event: Passed) -> None:
        self._keys.passed(event)
        self._damage.passed(event, self._groups[event.group].on_damage)

    def _note_hole(self, event: Damaged | Lost) -> None:
        for group in self._groups.values():
            if event.stream in group.streams:
                lent = group.streams[event.stream]
                epoch = max(lent.grant_epoch, lent.hand_epoch)
                lent.holes.append((event.start, event.end, epoch))

    def _handed_out(self, event: HandedOut) -> None:
        group = self._groups[event.group]
        lent = group.streams[event.stream]
        offset = event.offset
        self._check_due(event, group, lent)
        self._log.check_key(event)
        known = lent.counted.get(offset, 0)
        note_handed_out(event, lent, self._ends.get(event.stream, 0))
        self._check_grant(event, lent)
        self._check_key_order(event, group)
        self._queues.handed_out(event, EARLY_US_MAX + self._unsure_us(event))
        handed, level = lent.hands.get(offset, 0), self._queues.level(event.group, event.stream)
        if not handed and level == MAIN:
            _check_in_turn(event, lent.first_below, event.key if group.by_key else None)
        elif not event.redelivered:
            raise Violation("S4", f"handed out again without a mark: {event}")
        # Each grant before may have ended in doubt, and this one counts the known attempts.
        if not 1 <= event.attempt <= known + event.grant_epoch:
            raise Violation("S10", f"handed out {known} times before: {event}")
        # A record that was to follow its key and was not moved counts as handed out once it is
        # passed.
        if event.attempt != known + 1 and not (self._disturbed or group.by_key):
            raise Violation("S10", f"handed out {known} times, and nothing disturbed: {event}")
        if event.attempt <= known and not self._charges_nobody:
            raise Violation("S10", f"a hand-out before was not counted, even in doubt: {event}")
        if event.attempt <= lent.attempts.get(offset, 0):
            raise Violation("S10", f"the attempt before was not counted: {event}")
        self._check_rested(event, lent)
        if offset in lent.durable:
            raise Violation("A1", f"its acknowledgement was durable: {event}")
        unseen = not (handed or self._disturbed or self._refused)
        if lent.may_be_marked(offset, event.grant_epoch):
            unseen = False
        if event.redelivered and lent.follows and unseen and level == MAIN:
            raise Violation("I5", f"marked though nobody can have seen it: {event}")
        lent.hands[offset] = handed + 1
        lent.attempts[offset] = event.attempt

    def _check_key_order(self, event: HandedOut, group: _Group) -> None:
        if not group.destroyed:
            self._keys.handed_out(event, group.streams, group.every)

    def _check_rested(self, event: HandedOut, lent: CheckedStream) -> None:
        unsure_us = EARLY_US_MAX + self._unsure_us(event)
        lent.asked.pop(event.offset, None)
        until_us = lent.rests.pop(event.offset, 0)
        if event.at_us + unsure_us < until_us:
            raise Violation("S13", f"it was to rest until {until_us} us: {event}")

    def _unsure_us(self, event: HandedOut) -> int:
        return int((event.at_us + DELAY_US_MAX) * self._clock_skew)

    def _check_grant(self, event: HandedOut, lent: CheckedStream) -> None:
        if event.grant_epoch < lent.hand_epoch:
            raise Violation("S4", f"an older grant still hands out: {event}")
        if event.grant_epoch > lent.hand_epoch:
            lent.follows = event.grant_epoch == lent.hand_epoch + 1
            lent.hand_epoch, lent.hand_member = event.grant_epoch, event.member
            lent.attempts.clear()
            # A rest that an older grant asked for may be lost, unless something showed it to be
            # durable.
            lent.asked.clear()
        elif event.member != lent.hand_member:
            raise Violation("S3", f"{lent.hand_member} hands out under the same grant: {event}")
        if 0 < lent.grant_epoch < event.grant_epoch:
            raise Violation("S3", f"its grant is not durable: {event}")
        if event.grant_epoch == lent.grant_epoch and lent.granted.is_acked(event.offset):
            raise Violation("I17", f"its ack was durable before its grant: {event}")

    def _check_due(self, event: HandedOut, group: _Group, lent: CheckedStream) -> None:
        begun = event.offset >= lent.start or event.offset in lent.reopened
        if event.offset >= self._ends.get(event.stream, 0) or not begun:
            raise Violation("S7", f"the log does not have it, or the group begins later: {event}")
        for start, end, epoch in lent.holes:
            if start <= event.offset < end and event.grant_epoch > epoch:
                raise Violation("S7", f"it was gone when the stream was granted: {event}")
        if self._is_rejected(event.group, event.stream, event.offset):
            raise Violation("S7", f"the filter rejects it: {event}")

    def _is_rejected(self, name: str, stream: str, offset: int) -> bool:
        """Whether the filter of the group rejects the record."""
        every = self._groups[name].every
        return bool(every) and offset % every == 0 and not self._queues.level(name, stream)

    def _acked(self, event: Acked) -> None:
        self._queues.acked(event)
        self._keys.let_go(event)
        lent = self._groups[event.group].streams[event.stream]
        if 0 < event.grant_epoch < lent.moved_epoch:
            return
        lent.acked.add(event.offset)
        lent.acked_us[event.offset] = event.at_us

    def _ack_durable(self, event: AckDurable) -> None:
        self._queues.durably_acked(event)
        lent = self._groups[event.group].streams[event.stream]
        durable = [offset for part in event.acked for offset in range(*part)]
        if 0 < event.grant_epoch < lent.moved_epoch:
            # An operator may have reopened some before this was heard.
            durable = [offset for offset in durable if lent.stored.is_acked(offset)]
        lent.durable.update(durable)
        # A member's refusals go before the acks that it gives after them.
        newest_us = max((lent.acked_us.get(offset, 0) for offset in durable), default=0)
        for offset, (member, at_us, until_us) in list(lent.asked.items()):
            if member == event.member and at_us < newest_us:
                del lent.asked[offset]
                lent.rests[offset] = until_us

    def _committed(self, event: Committed) -> None:
        self._queues.committed(event)
        group = self._groups[event.group]
        lent = group.streams[event.stream]
        stored, before = Progress(event.floor, event.ranges), lent.stored
        if stored != before:
            if stored.merged(before) != stored:
                raise Violation("S2", f"progress shrank from {before}: {event}")
            self._check_acked(event, stored, group, lent)
            lent.stored = stored
        if event.grant_epoch >= 0:
            if event.grant_epoch < lent.grant_epoch:
                raise Violation("S3", f"the grant epoch fell from {lent.grant_epoch}: {event}")
            if event.grant_epoch > lent.grant_epoch:
                lent.note_grant(event.grant_epoch, self._ends.get(event.stream, 0))
            lent.grant_epoch = event.grant_epoch

    def _moved(self, event: Moved) -> None:
        group = self._groups[event.group]
        lent = group.streams[event.stream]
        before = Progress(event.floor_before, event.ranges_before)
        if before.merged(lent.stored) != before:
            raise Violation("S2", f"progress shrank from {lent.stored} before a move: {event}")
        self._check_acked(event, before, group, lent)
        reopened, passed = take_move(event, lent, self._ends.get(event.stream, 0))
        self._queues.moved(event.group, event.stream, reopened, passed)

    def _check_acked(
        self, event: Committed | Moved, stored: Progress, group: _Group, lent: CheckedStream
    ) -> None:
        end = stored.ranges[-1][1] if stored.ranges else stored.floor
        if end > self._ends.get(event.stream, 0):
            raise Violation("S2", f"progress beyond the end of the log: {event}")
        before = lent.stored
        for low, high in ((0, stored.floor), *stored.ranges):
            fresh = complement(((0, before.floor), *before.ranges), low, high)
            for offset in (offset for part in fresh for offset in range(*part)):
                if self._is_rejected(event.group, event.stream, offset):
                    continue
                if self._queues.is_done(event.group, event.stream, offset):
                    continue
                if offset in lent.acked:
                    lent.settled.add(offset)
                    continue
                if not self._log.is_hole(event.stream, offset):
                    raise Violation("S2", f"nobody acknowledged {offset}: {event}")
                self._damage.check_covered(event.group, group.on_damage, event.stream, offset)

    def _led(self, event: Led) -> None:
        group = self._groups[event.group]
        if event.leader_epoch <= group.leader_epoch:
            raise Violation("S3", f"a leader epoch twice: {event}")
        if group.leader_epoch:
            for lent in group.streams.values():
                lent.taken_over()
        group.leader_epoch = event.leader_epoch

    def _disturb(self, event: Disturbed) -> None:
        self._disturbed = True
        self._charges_nobody = self._charges_nobody or event.what not in MEMBER_FAULTS

    def _out_of_time(self, event: OutOfTime) -> None:
        self._keys.let_go(event)

    def _nakked(self, event: Nakked) -> None:
        self._queues.nakked(event)
        self._keys.let_go(event)
        self._refused = True
        if event.until_us:
            lent = self._groups[event.group].streams[event.stream]
            lent.asked[event.offset] = event.member, event.at_us, event.until_us

    def _ended(self, event: Ended) -> None:
        if unsettled := self.unsettled():
            raise Violation("L2", f"(group, stream, floor, end): {unsettled}")
        for name, group in self._groups.items():
            if group.destroyed or not group.declared:
                continue
            for stream, lent in group.streams.items():
                if stream not in self._gone and not self._queues.level(name, stream):
                    self._check_delivered(name, stream, group, lent)

    def _check_delivered(self, name: str, stream: str, group: _Group, lent: CheckedStream) -> None:
        reachable = self._reachable(stream, group, lent)
        if self._waits_for_another(name, stream, group):
            reachable = 0
        for offset in [*lent.owed, *range(lent.start, self._ends.get(stream, 0))]:
            times = lent.counted.get(offset, 0)
            if self._is_rejected(name, stream, offset) or self._queues.has_left(
                name, stream, offset
            ):
                continue
            if self._log.is_hole(stream, offset):
                continue
            if offset in lent.owed and offset < reachable:
                raise Violation("S21", f"{name} did not get {stream} @{offset} again")
            seen = offset in lent.hands or offset in lent.passed
            if not seen and offset < reachable:
                raise Violation("I4", f"{name} never got {stream} @{offset}")
            if times > 1 and not (self._disturbed or self._refused):
                raise Violation("I5", f"{name} got {stream} @{offset} {times} times")


_TAKERS: dict[type[Event], Callable[[Checker, Any], None]] = {
    Declared: Checker._declared,
    Born: Checker._born,
    Destroyed: Checker._destroyed,
    Gone: Checker._stream_gone,
    Appended: Checker._appended,
    Stored: Checker._stored,
    Published: Checker._published,
    Unpublished: Checker._unpublished,
    Damaged: Checker._damaged,
    Lost: Checker._lost,
    Unreadable: Checker._unreadable,
    Passed: Checker._passed,
    HandedOut: Checker._handed_out,
    Acked: Checker._acked,
    Nakked: Checker._nakked,
    OutOfTime: Checker._out_of_time,
    AckDurable: Checker._ack_durable,
    Moved: Checker._moved,
    Committed: Checker._committed,
    QueuesBorn: Checker._queues_born,
    Queued: Checker._queued,
    LaneTaken: Checker._lane_taken,
    Redriven: Checker._redriven,
    Errand: Checker._errand,
    ErrandEnded: Checker._errand_ended,
    Led: Checker._led,
    Disturbed: Checker._disturb,
    Ended: Checker._ended,
}


def _check_in_turn(event: HandedOut, first_below: dict[Key, int], line: Key) -> None:
    if event.offset >= first_below[line]:
        first_below[line] = event.offset + 1
    elif not (event.redelivered and event.attempt > ISOLATE_AFTER_DOUBTS):
        raise Violation("I6", f"handed out for the first time after later ones: {event}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge the history in a file; returns the exit code."""
    parser = argparse.ArgumentParser(description="Judge a history.")
    parser.add_argument("file", type=Path, help="events as JSON lines")
    path: Path = parser.parse_args(arguments).file
    try:
        Checker().take_all(read_history(path))
    except Violation as violation:
        sys.stdout.write(f"{violation}\n")
        return 1
    except (OSError, ValueError) as error:
        parser.error(str(error))
    return 0


if __name__ == "__main__":
    sys.exit(main())
