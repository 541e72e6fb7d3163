"""Operators who hand streams over, end members and keep clients out, at random.

An operation is durable from the moment when it is asked for, like its row; what a leader has not
concluded, the next one is asked for again. One runs on a group at a time. Invariant: this decides
nothing that a leader decides, and looks at one only to name existing things, and to judge what it
calls done. Names are those of docs/proof/groups-simulator.md::

    O1  who was evicted is no member when that is done; a banned client is none before its ban ends
    O2  a transfer is done when its taker has the stream and the stored row pins it there, or when
        the stream or the taker is gone
    O3  at rest a pinned stream is with a member of its session, if there is one
    O4  every operation is done, once all has healed, cancelled ones too        (`unended`)
"""

from functools import partial
from typing import TYPE_CHECKING

from dss_core.ids import StreamId
from dss_sim.groups.member_plans import GRACE_MS_MAX
from dss_sim.groups.store import at_once
from dss_sim.groups.violation import Violation
from dssd.leaders.bans import stored_bans
from dssd.machines.leader.events import Instruction, LeaderInput
from dssd.machines.leader.hand_over_events import (
    Ban,
    CancelHandOvers,
    Evict,
    Rebalance,
    RevokeGrant,
    TransferGrant,
    Unpin,
)
from dssd.machines.leader.lent_stream import NOT_LENT, LentStream, StreamState
from dssd.machines.leader.rebalance import planned_hand_overs
from dssd.machines.leader.state import Alarm, KeptFor, Leader, LeaderState, Member, owner_of
from dssd.machines.messages import SessionId
from dssd.store.port import Put
from dssd.store.rows import BanRow, GrantRow, GroupRow

if TYPE_CHECKING:
    from dss_sim.groups.world import World

BANNED_MS = (100, 3_000)
GRACES_MS = (None, None, 0, 300, GRACE_MS_MAX)
WALL_MS = 1_700_000_000_000
"""The wall-clock time when a run begins."""
LOOK_AGAIN_US = 200_000
"""How often a healed group is checked for winding up."""


class OperatorClock:
    """The clocks of the leaders' host; its wall clock has no faults."""

    def __init__(self, world: "World") -> None:
        self._world = world

    def now_ms(self) -> int:
        """Monotonic."""
        return self._world.leaders.host.now_ms()

    def wall_ms(self) -> int:
        """By the wall clock."""
        return WALL_MS + self.now_ms()


class MemberOperator:
    """What operators asked for, in all groups."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._chance = world.chance.of("member operator")
        self._clock = OperatorClock(world)
        self._numbers = 1 << 32
        self._asked: dict[int, dict[int, Instruction]] = {}
        """Operations that are not concluded, by group."""
        self._cancelled: set[int] = set()
        """Parts of them that were cancelled."""
        self._out: dict[tuple[int, str], int] = {}
        """Clients that are kept out after their eviction, and until when."""

    # What operators ask for

    def transfer(self, group: GroupRow) -> None:
        """A random stream to a random member."""
        leader = self._leader(group)
        if leader is None:
            return
        lent, taker = self._stream(leader), self._member(leader)
        ids = taker.borrower_id, taker.session_id
        self._ask(group, TransferGrant(self._next(), lent.stream, *ids))

    def revoke(self, group: GroupRow) -> None:
        """A random stream from whoever has it."""
        leader = self._leader(group)
        if leader is None:
            return
        lent = self._stream(leader)
        giver = leader.members.get(owner_of(lent) or b"")
        if giver is not None:
            self._ask(group, RevokeGrant(self._next(), lent.stream, giver.session_id))

    def unpin(self, group: GroupRow) -> None:
        """Unpin a random pinned stream."""
        leader = self._leader(group)
        if leader is None:
            return
        lent = self._stream(leader)
        if lent.pinned_session_id is not None:
            self._ask(group, Unpin(self._next(), lent.stream, lent.pinned_session_id))

    def rebalance(self, group: GroupRow) -> None:
        """Rebalance with at most so many moves."""
        leader = self._leader(group)
        if leader is not None:
            moves = planned_hand_overs(leader, self._chance.randint(1, 4))
            self._ask(group, Rebalance(self._next(), moves))

    def evict(self, group: GroupRow) -> None:
        """Evict a random member, now and then with a ban."""
        leader = self._leader(group)
        if leader is None or group.session_id is not None:
            return
        member, number, ban = self._member(leader), self._next(), None
        grace_ms = self._chance.choice(GRACES_MS)
        if self._chance.random() < 0.5:
            row = BanRow(group.group_id, member.client_id, self._until_ms(), number)
            at_once(self._world.store.rows.commit([Put(row)]))
            ban = Ban(row.client_id, row.until_ms, row.until_ms - WALL_MS)
        ids = member.borrower_id, member.session_id
        self._ask(group, Evict(number, *ids, "stuck", grace_ms, ban))

    def repeat(self, group: GroupRow) -> None:
        """Ask once more for the running operation."""
        self.repeat_on(group.group_id)

    def cancel(self, group: GroupRow) -> None:
        """Cancel the running operation; this does not lift a ban."""
        for number, instruction in self._asked.get(group.group_id, {}).items():
            if not isinstance(instruction, Evict) or instruction.ban is None:
                self._cancelled.add(number)
                cancellation = CancelHandOvers(number)
                self._world.say("operator", cancellation)
                self._instruct(group.group_id, cancellation)

    def _until_ms(self) -> int:
        # No ban outlasts the faults.
        left_us = self._world.plan.heal_us - self._world.schedule.now_us
        host = self._world.leaders.host
        until_ms = host.now_ms() + self._chance.randint(*BANNED_MS)
        return WALL_MS + min(until_ms, host.now_ms() + host.elapsed_ms(max(left_us, 0)))

    def _leader(self, group: GroupRow) -> Leader | None:
        acting = self._world.leaders.leading.get(group.group_id)
        leader = None if acting is None else acting.leader
        if self._asked.get(group.group_id) or leader is None:
            return None
        ready = leader.state is LeaderState.LEADING and leader.members and leader.streams
        return leader if ready else None

    def _stream(self, leader: Leader) -> LentStream:
        return leader.streams[self._chance.choice(leader.order)]

    def _member(self, leader: Leader) -> Member:
        return leader.members[self._chance.choice(sorted(leader.members))]

    def _next(self) -> int:
        self._numbers += 1
        return self._numbers

    def _ask(self, group: GroupRow, instruction: Instruction) -> None:
        self._world.say("operator", instruction)
        self._asked.setdefault(group.group_id, {})[instruction.number] = instruction
        self._instruct(group.group_id, instruction)

    def _instruct(self, group_id: int, instruction: Instruction) -> None:
        leaders = self._world.leaders
        instruct = partial(leaders.instruct, group_id, instruction)
        self._world.schedule.arrive(0, instruct, leaders.host)

    # What leaders ask and say

    def asked_of(self, group_id: int) -> list[Instruction]:
        """What a leader of the group is to do."""
        asked = self._asked.get(group_id, {})
        cancelled = [CancelHandOvers(number) for number in asked if number in self._cancelled]
        return [*asked.values(), *cancelled]

    def bans(self, group_id: int) -> tuple[Ban, ...]:
        """The bans for a leader that takes over."""
        return at_once(stored_bans(self._world.store.rows, group_id, self._clock))

    def resume(self) -> None:
        """The daemon is up again, and continues unfinished operations."""
        for group_id in list(self._asked):
            self.repeat_on(group_id)

    def repeat_on(self, group_id: int) -> None:
        """The group lost its leader."""
        for instruction in self.asked_of(group_id):
            self._instruct(group_id, instruction)

    def forget(self, group_id: int) -> None:
        """The group was removed."""
        self._asked.pop(group_id, None)

    def unended(self) -> list[Instruction]:
        """O4: operations that are not done."""
        return [each for asked in self._asked.values() for each in asked.values()]

    # What is judged

    def concluded(self, group_id: int, number: int, leader: Leader) -> None:
        """A leader says that an operation is done.

        Raises:
            Violation: it is not.
        """
        instruction = self._asked.get(group_id, {}).pop(number, None)
        if number in self._cancelled:
            return
        match instruction:
            case Evict(borrower_id=evicted, ban=ban):
                if evicted in leader.members:
                    raise Violation("O1", f"evicted, but a member: {evicted!r}")
                if ban is not None:
                    self._out[group_id, ban.client_id] = ban.ends_ms
            case TransferGrant(stream=stream, session_id=session_id):
                self._check_transferred(group_id, leader, stream, session_id)
            case _:
                pass

    def _check_transferred(
        self, group_id: int, leader: Leader, stream: StreamId, session_id: SessionId
    ) -> None:
        lent = leader.streams.get(stream)
        gone = lent is None or lent.state in NOT_LENT
        if gone or lent is None or not _stays(leader, session_id):
            return
        row = at_once(self._world.store.rows.read(GrantRow, (group_id, *stream)))
        holder = leader.members.get(lent.holder or b"")
        has = lent.state is StreamState.GRANTED and holder is not None
        if not has or holder is None or holder.session_id != session_id:
            raise Violation("O2", f"{stream} is not with {session_id!r}: {lent.state}")
        if row is None or row.row.pinned_session_id != session_id:
            raise Violation("O2", f"{stream} is pinned in no row to {session_id!r}")

    def check(self, group_id: int, leader: Leader, given: LeaderInput) -> None:
        """O1, O3: judge a leader after a step.

        Raises:
            Violation: a banned client is a member, or a pinned stream is elsewhere.
        """
        for member in leader.members.values() if self._out else ():
            if self._clock.now_ms() < self._out.get((group_id, member.client_id), 0):
                raise Violation("O1", f"{member.client_id} is a member, and banned: {given}")
        if leader.state is LeaderState.LEADING and _is_at_rest(leader):
            for lent in leader.streams.values():
                _check_pinned(leader, lent)

    # The end

    def wind_up(self) -> None:
        """Unpin and rebalance until nothing is left to do, so that shares are equal."""
        if not self._numbers & 0xFFFFFFFF:
            return
        for group in list(self._world.groups.values()):
            leader = self._leader(group)
            if leader is None:
                continue
            pinned = [each for each in leader.streams.values() if each.pinned_session_id]
            for lent in pinned:
                assert lent.pinned_session_id is not None
                self._ask(group, Unpin(self._next(), lent.stream, lent.pinned_session_id))
            moves = planned_hand_overs(leader, len(leader.streams))
            if moves and not pinned and _is_at_rest(leader):
                self._ask(group, Rebalance(self._next(), moves))
        self._world.schedule.after(LOOK_AGAIN_US, partial(self.wind_up))


def _stays(leader: Leader, session_id: SessionId | None) -> bool:
    of_session = leader.sessions.get(session_id or b"", {})
    return any(not leader.members[each].leaving for each in of_session)


def _is_at_rest(leader: Leader) -> bool:
    due = leader.timers.at_ms(Alarm.REBALANCE) is not None or bool(leader.moves)
    return not due and leader.reserve is KeptFor.NOTHING


def _check_pinned(leader: Leader, lent: LentStream) -> None:
    if lent.state in NOT_LENT or not _stays(leader, lent.pinned_session_id):
        return
    owner = leader.members.get(owner_of(lent) or b"")
    if owner is not None and owner.session_id != lent.pinned_session_id:
        raise Violation("O3", f"{lent.stream} is pinned, and with {owner.client_id}")
