"""The host of the leaders: registry and actors of `dssd.leaders`, without a loop.

Invariant: at most one leader for each group at a time; like the actor it takes over only after its
claim is made and its rows are read. A dead leader's commit may still reach the store late; the
claim of the next one fences it.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, assert_never

from dss_core.errors import GroupDestroyed
from dss_core.ids import StreamId
from dss_sim.groups.borrower_rules import says_leaving
from dss_sim.groups.history import Disturbed, Led
from dss_sim.groups.leader_steps import check_staying, check_step, epochs_of
from dss_sim.groups.leader_times import check_times, times_before
from dss_sim.groups.machine_rules import check_moved, check_written
from dss_sim.groups.store import AtOnce, at_once
from dssd.events.teller import Unheard
from dssd.leaders.registry import BOOT_ID_BYTES
from dssd.leaders.rehoming import Rehomings
from dssd.leaders.slices import slicing_of
from dssd.leaders.takeover import (
    Takeover,
    TakeoverCommit,
    next_takeover,
    present_streams,
    stored_moves,
    stored_streams,
    stored_versions,
    stream_sets_of,
    version_writes,
    writes_of,
)
from dssd.machines.leader.events import (
    Committed,
    Concluded,
    Destroyed,
    GoBack,
    Held,
    Hold,
    Instructed,
    Instruction,
    LeaderEffect,
    LeaderInput,
    LendAgain,
    PauseGroup,
    Persist,
    Received,
    Rehome,
    Rehomed,
    Send,
    SessionClosed,
    SessionsEnding,
    Stop,
    StopAsked,
    StreamsChanged,
    Ticked,
    TookOver,
    WakeAt,
    WentBack,
)
from dssd.machines.leader.machine import step
from dssd.machines.leader.slicing import Slicing
from dssd.machines.leader.state import Leader
from dssd.machines.messages import (
    BorrowerId,
    Grant,
    Invalidate,
    LeaderWanted,
    LeaseStreams,
    Revoke,
    Revoked,
    SessionId,
    ToBorrower,
    ToLeader,
    UpdateStreams,
)
from dssd.store.port import Precondition, PreconditionFailed, Put, Write
from dssd.store.rows import GroupRow, LeaderRow
from dssd.topics.model import Topic

if TYPE_CHECKING:
    from dss_sim.groups.schedule import Host
    from dss_sim.groups.world import World


GOODBYES_US = 10_000
"""Longer than the latency of a message that is not late."""


class Leading:
    """One leader of one group: claiming, loading, leading."""

    __slots__ = (
        "claim", "commit_took_ms", "group", "kept_until_ms", "leader", "left", "mailbox", "over",
        "rehomings", "said_ms", "wake_ms",
    )  # fmt: skip

    def __init__(self, group: GroupRow) -> None:
        self.group = group
        self.claim: Takeover | None = None
        self.commit_took_ms = 0
        """The duration of its longest commit."""
        self.leader: Leader | None = None
        self.mailbox: list[LeaderInput] = []
        """Inputs that came before it led."""
        self.over = False
        self.kept_until_ms = 0
        """When the leases of holders from before it have ended; 0 if the daemon restarted since the
        last leader, as then none of them is left."""
        self.left: dict[BorrowerId, dict[StreamId, int]] = {}
        """Borrowers that said that they leave, and the grant epochs at that moment."""
        self.said_ms: dict[StreamId, int] = {}
        """When a stream's grant, revoke or end was last sent."""
        self.wake_ms: int | None = None
        self.rehomings: Rehomings | None = None


class LeaderHost:
    """All leaders of the world."""

    def __init__(self, world: "World", host: "Host") -> None:
        self.host = host
        self.leading: dict[int, Leading] = {}
        self.up = True
        self._world = world
        self._boots = 1
        self._led: dict[int, int] = {}
        """The boot of each group's newest leader."""
        self._stopping = False

    # What reaches it

    def receive(self, group_id: int, message: ToLeader) -> None:
        """A borrower's message arrived."""
        if not self.up:
            return
        acting = self.leading.get(group_id)
        if acting is None and isinstance(message, LeaderWanted) and not self._stopping:
            acting = self._start(group_id, message)
        if acting is not None:
            self._feed(acting, Received(message, self.host.now_ms()))

    def close_session(
        self, session_id: SessionId, group_ids: Collection[int], silent_ms: int | None
    ) -> None:
        """A client's connection closed; it has borrowers in these groups."""
        if not self.up:
            return
        for group_id in sorted(group_ids):
            acting = self.leading.get(group_id)
            if acting is not None:
                self._feed(acting, SessionClosed(session_id, self.host.now_ms(), silent_ms))

    def change_topic(self, topic: Topic, gone: tuple[StreamId, ...] = ()) -> None:
        """A topic grew, was sealed, or lost streams."""
        if self.up:
            for acting in list(self.leading.values()):
                if acting.group.filter in {pattern.text for pattern in topic.patterns}:
                    catalogue = self._world.catalogue
                    present = () if gone else present_streams(topic, catalogue, acting.group)
                    slicing = None if gone else self._slicing(acting)
                    given = StreamsChanged(self.host.now_ms(), present, gone, slicing)
                    self._feed(acting, given)

    def destroy(self, group_id: int) -> None:
        """The group was removed from the store."""
        acting = self.leading.get(group_id)
        if acting is not None and self.up:
            self._feed(acting, Destroyed(self.host.now_ms()))

    def instruct(self, group_id: int, instruction: Instruction) -> None:
        """An operation instructs the leader; one is started if there is none."""
        if not self.takes_sessions:
            return
        acting = self.leading.get(group_id)
        if acting is None:
            self._start(group_id)
        else:
            self._feed(acting, Instructed(instruction, self.host.now_ms()))

    # Its life

    def crash(self, *, with_sessions: bool) -> None:
        """The process dies without a word. If sessions die too, the next one is another boot."""
        self._boots += with_sessions
        self.up = False
        self._stopping = False
        self.host.crash()
        for acting in self.leading.values():
            self._end_jobs(acting)
        self.leading.clear()

    def restart(self) -> None:
        """Begin anew from the store alone."""
        self.up = True

    def stop(self) -> None:
        """Save everything and stop leading; sessions say goodbye next."""
        self._stopping = True
        for acting in list(self.leading.values()):
            note = partial(self.feed, acting, SessionsEnding)
            self._world.schedule.after(0, note, self.host)
            # The goodbyes of this moment come first, because the registry is left after the
            # sessions.
            stop = partial(self.feed, acting, StopAsked)
            self._world.schedule.after(GOODBYES_US, stop, self.host)

    def feed(
        self, acting: Leading, kind: type[SessionsEnding | StopAsked | Hold | LendAgain]
    ) -> None:
        """A request that says only that it is made."""
        now_ms = self.host.now_ms()
        if kind is LendAgain:
            self._feed(acting, LendAgain(now_ms, slicing=self._slicing(acting)))
        else:
            self._feed(acting, kind(now_ms))

    def _slicing(self, acting: Leading) -> Slicing | None:
        """The slicing by the group's present row."""
        group = self._world.groups.get(acting.group.name, acting.group)
        return slicing_of(group, self._world.catalogue)

    @property
    def takes_sessions(self) -> bool:
        """Whether the daemon is up and not stopping."""
        return self.up and not self._stopping

    def lose_leader(self, group_id: int) -> None:
        """One leader ends without a reason; the next one is in the same process."""
        acting = self.leading.pop(group_id, None)
        if acting is not None:
            acting.over = True
            self._end_jobs(acting)
            self._world.cursor_operator.resume_on(group_id)
            self._world.member_operator.repeat_on(group_id)
            self._world.shard_operator.repeat_on(group_id)
            self._world.pause_operator.repeat_on(group_id)

    # Taking over

    def _start(self, group_id: int, wanted: LeaderWanted | None = None) -> Leading | None:
        world = self._world
        found = at_once(world.store.rows.read(GroupRow, (group_id,)))
        if found is None and wanted is not None:
            invalid = Invalidate(wanted.borrower_id, wanted.leader_epoch, GroupDestroyed.code)
            world.to_borrower(self.host, invalid)
        if found is None:
            return None
        acting = self.leading[group_id] = Leading(found.row)
        known = at_once(world.store.rows.read(LeaderRow, (group_id,)))
        attempt = next_takeover(group_id, known, self._boots.to_bytes(BOOT_ID_BYTES))
        answered = partial(self._claimed, acting, attempt)
        self._commit(acting, [Put(attempt.row)], attempt.conditions, answered)
        return acting

    def _claimed(
        self, acting: Leading, attempt: TakeoverCommit, answer: list[int] | PreconditionFailed
    ) -> None:
        if isinstance(answer, PreconditionFailed):
            self._end(acting)
            return
        world, epoch = self._world, attempt.row.leader_epoch
        world.tell(Led(world.schedule.now_us, acting.group.name, epoch))
        acting.claim = Takeover(attempt.row, answer[0], attempt.restarted)
        owner = acting.group.session_id
        sets = stream_sets_of(acting.group)
        acting.leader = Leader(
            epoch, owner_session=owner, timing=world.plan.timing, stream_sets=sets
        )
        stored = at_once(
            stored_streams(world.store.rows, world.catalogue, world.log, acting.group, AtOnce())
        )
        versions = at_once(stored_versions(world.store.rows, acting.group))
        moves = at_once(stored_moves(world.store.rows, acting.group))
        waiting, acting.mailbox = acting.mailbox, []
        if self._led.get(acting.group.group_id) == self._boots:
            acting.kept_until_ms = self.host.now_ms() + world.plan.timing.lease_ms
        self._led[acting.group.group_id] = self._boots
        group_id, paused = acting.group.group_id, acting.group.paused
        bans = world.member_operator.bans(group_id)
        taken = (stored, attempt.restarted, versions, moves)
        now_ms, slicing = self.host.now_ms(), self._slicing(acting)
        self._feed(acting, TookOver(now_ms, *taken, bans=bans, paused=paused, slicing=slicing))
        asked = (
            world.pause_operator, world.cursor_operator, world.member_operator,
            world.shard_operator,
        )  # fmt: skip
        for instruction in (each for operator in asked for each in operator.asked_of(group_id)):
            self._feed(acting, Instructed(instruction, self.host.now_ms()))
        for given in waiting:
            # The pause that it found at its beginning is older than the group's present state.
            if not (isinstance(given, Instructed) and isinstance(given.instruction, PauseGroup)):
                self._feed(acting, given)

    # Leading

    def _feed(self, acting: Leading, given: LeaderInput) -> None:
        if acting.over:
            return
        if acting.leader is None:
            acting.mailbox.append(given)
            return
        self._world.say("leader", given)
        sight = self._world.await_leader(acting, given)
        times = times_before(acting.leader, given)
        effects = step(acting.leader, given)[1]
        acting.commit_took_ms = max(acting.commit_took_ms, acting.leader.commit_took_ms)
        check_times(times, acting.leader, acting.commit_took_ms)
        if sight is not None:
            check_step(sight, acting.leader, effects, acting.kept_until_ms)
        if isinstance(given, Received) and says_leaving(given.message):
            acting.left.setdefault(given.message.borrower_id, epochs_of(acting.leader))
        self._world.touch_leader(acting)
        self._world.member_operator.check(acting.group.group_id, acting.leader, given)
        self._world.shard_operator.check(acting.group.group_id, acting.leader, given)
        for effect in effects:
            if acting.over:
                return
            self._carry_out(acting, effect)
            self._world.count_effect(self.host)

    def _carry_out(self, acting: Leading, effect: LeaderEffect) -> None:
        match effect:
            case Send(message):
                self._check_sent(acting, message)
                self._world.to_borrower(self.host, message)
            case Persist():
                self._persist(acting, effect)
            case WakeAt(at_ms):
                self._arm(acting, at_ms)
            case Concluded(number):
                assert acting.leader is not None
                group_id = acting.group.group_id
                self._world.member_operator.concluded(group_id, number, acting.leader)
                self._world.shard_operator.concluded(group_id, number, acting.leader)
                self._world.cursor_operator.concluded(group_id, number)
                self._world.pause_operator.concluded(acting.group, number)
            case Held():
                self._world.hold_operator.held(acting)
            case Rehome() | GoBack():
                self._rehome(acting, effect)
            case Stop():
                self._end(acting)
            case _:
                assert_never(effect)

    def _check_sent(self, acting: Leading, message: ToBorrower) -> None:
        assert acting.leader is not None
        group_id = acting.group.group_id
        self._world.ledger.check_said(group_id, acting.leader, message)
        if isinstance(message, Invalidate) and message.stream is None:
            self._note_stranger(acting, message.borrower_id)
        if isinstance(message, Revoke | Revoked):
            acting.said_ms[message.stream] = self.host.now_ms()
        if isinstance(message, Revoke):
            check_moved(acting.leader, message.stream, self.host.now_ms())
        elif isinstance(message, UpdateStreams):
            for taken in message.taken_over:
                check_moved(acting.leader, taken.stream, self.host.now_ms())
        if isinstance(message, Grant | LeaseStreams | UpdateStreams):
            check_staying(acting.left, message)
            for granted in message.streams:
                acting.said_ms[granted.stream] = self.host.now_ms()
                self._world.check_fenced(group_id, granted.stream, granted.grant_epoch, "S4")

    def _note_stranger(self, acting: Leading, borrower_id: BorrowerId) -> None:
        """A message that overtakes its borrower's presentation may cost it all streams."""
        assert acting.leader is not None
        streams = acting.leader.streams.values()
        if any(lent.reserved and lent.holder == borrower_id for lent in streams):
            self._world.tell(Disturbed(self._world.schedule.now_us, "not presented yet"))

    def _persist(self, acting: Leading, persist: Persist) -> None:
        assert acting.claim is not None
        writes = writes_of(acting.group, persist.records)
        check_written(persist.records, writes)
        self._world.ledger.expect(writes, acting.group.group_id, acting.claim.row.leader_epoch)
        writes += version_writes(acting.group, persist)
        answered = partial(self._persisted, acting, persist)
        self._commit(acting, writes, [acting.claim.still_holds()], answered)

    def _persisted(
        self, acting: Leading, persist: Persist, answer: list[int] | PreconditionFailed
    ) -> None:
        if isinstance(answer, PreconditionFailed):
            self._lose_leadership(acting)
            return
        log = self._world.log
        ends = tuple(
            (stream, log.bounds(stream).end) for stream in persist.measure if stream in log
        )
        self._feed(acting, Committed(persist.commit_id, self.host.now_ms(), ends))

    def _lose_leadership(self, acting: Leading) -> None:
        group_id = acting.group.group_id
        if at_once(self._world.store.rows.read(GroupRow, (group_id,))) is None:
            self._feed(acting, Destroyed(self.host.now_ms()))
        else:
            self._end(acting)

    def _commit(
        self,
        acting: Leading,
        writes: Sequence[Write],
        preconditions: Sequence[Precondition],
        answered: Callable[[list[int] | PreconditionFailed], None],
    ) -> None:
        def hear(answer: list[int] | PreconditionFailed) -> None:
            if not acting.over:
                answered(answer)

        self._world.store.commit(self.host, writes, preconditions, hear)

    def _arm(self, acting: Leading, at_ms: int) -> None:
        acting.wake_ms = at_ms
        tick = partial(self._tick, acting, at_ms)
        self._world.schedule.after(self.host.until_us(at_ms), tick, self.host)

    def _tick(self, acting: Leading, at_ms: int) -> None:
        if acting.wake_ms == at_ms and not acting.over:
            acting.wake_ms = None
            self._feed(acting, Ticked(self.host.now_ms()))

    def _rehome(self, acting: Leading, asked: Rehome | GoBack) -> None:
        world = self._world
        if acting.rehomings is None:

            def tell(done: Rehomed | WentBack) -> None:
                world.schedule.after(0, partial(self._rehomed, acting, done), self.host)

            acting.rehomings = Rehomings(
                lambda: acting.group,
                world.store.rows,
                world.catalogue,  # type: ignore[arg-type]  # as much of it as is asked for
                world.queue_work.parts,
                Unheard(),
                tell,
            )
        acting.rehomings.begin(asked, world.queue_work.start)

    def _rehomed(self, acting: Leading, done: Rehomed | WentBack) -> None:
        self._feed(acting, replace(done, now_ms=self.host.now_ms()))

    def _end_jobs(self, acting: Leading) -> None:
        """Its jobs end with it, as in the leader's process."""
        if acting.rehomings is not None:
            acting.rehomings.end()
            self._world.queue_work.run()

    def _end(self, acting: Leading) -> None:
        acting.over = True
        self._end_jobs(acting)
        if self.leading.get(acting.group.group_id) is acting:
            del self.leading[acting.group.group_id]
        for given in acting.mailbox:
            if isinstance(given, Received) and isinstance(given.message, LeaderWanted):
                self.receive(acting.group.group_id, given.message)
            elif isinstance(given, Instructed):
                self.instruct(acting.group.group_id, given.instruction)
