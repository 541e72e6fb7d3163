"""The shell of one leader: it feeds its mailbox to the leader machine and carries out the effects.

Invariant: one step at a time, effects in order, and at most one commit in flight. A commit whose
precondition fails means that another leader took over, or that the group is gone: the actor stops
and writes nothing more. It must not know its peers: messages go through mailboxes.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import NoReturn, assert_never

from dss_core.errors import DiskFull, StreamNotFound
from dss_core.filters import TopicFilter
from dss_core.ids import StreamId
from dss_core.progress import Progress
from dssd.clock import Clock
from dssd.events.teller import Teller, Unheard
from dssd.leaders.bans import stored_bans
from dssd.leaders.held_streams import Waiter, lanes_by_stream
from dssd.leaders.lane_topics import LaneTopics
from dssd.leaders.lanes import has_queues
from dssd.leaders.limits import TAKE_OVER_LOOK_MS
from dssd.leaders.lost_members import LostMembers
from dssd.leaders.rehoming import Rehomings
from dssd.leaders.slices import slicing_of
from dssd.leaders.takeover import (
    Takeover,
    claim,
    present_streams,
    rows_of,
    stored_moves,
    stored_streams,
    stored_versions,
    stream_sets_of,
    version_writes,
)
from dssd.limits import FULL_DISK_RETRY_S
from dssd.log.port import Log
from dssd.loop_yield import LoopTurn
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
    LeaderGlance,
    LeaderInput,
    LeaderView,
    LendAgain,
    Persist,
    Received,
    Rehome,
    Send,
    SessionClosed,
    SessionsEnding,
    Stop,
    StopAsked,
    StreamsChanged,
    Ticked,
    TookOver,
    WakeAt,
)
from dssd.machines.leader.hand_over_events import HandOver
from dssd.machines.leader.machine import step
from dssd.machines.leader.rebalance import planned_hand_overs, planned_shares
from dssd.machines.leader.slicing import Slicing
from dssd.machines.leader.state import Leader, glance, view
from dssd.machines.leader.timing import LeaderTiming
from dssd.machines.messages import LeaderWanted, ToBorrower, ToLeader
from dssd.queues.moving import Parts
from dssd.queues.writers import QueueWriters
from dssd.store.port import Precondition, PreconditionFailed, Store, Write
from dssd.store.rows import GroupRow
from dssd.topics.catalogue import Catalogue, Topic

ROUND_INPUTS_MAX = 64
"""Steps before other tasks get their turn."""


LEADER_MAILBOX_MAX = 65_536
"""How many messages may wait for one leader. More are dropped, which the protocol survives."""


class LeaderActor:
    """Leads one group, from the call of `run` to its return."""

    def __init__(
        self,
        group: GroupRow,
        *,
        store: Store,
        catalogue: Catalogue,
        log: Log,
        clock: Clock,
        boot_id: bytes,
        send: Callable[[ToBorrower], None],
        concluded: Callable[[int], None],
        timing: LeaderTiming,
        teller: Teller,
        writers: QueueWriters,
    ) -> None:
        self.group = group
        self._row = group
        """The present row; ``group`` is the row when the streams were last held back."""
        self._filter = TopicFilter.parse(group.filter)
        self._store = store
        self._catalogue = catalogue
        self._log = log
        self._clock = clock
        self._boot_id = boot_id
        self._send = send
        self._concluded = concluded
        self._timing = timing
        # A private group ends with its session, and nobody else may have its streams.
        heard = teller if group.session_id is None else Unheard()
        self._lost_members = LostMembers(group.full_name, heard, catalogue.name_of)
        self._lanes = LaneTopics(
            group.group_id, catalogue, self._tell_topic, lambda: has_queues(self.group)
        )
        self._rehomings = Rehomings(
            lambda: self.group, store, catalogue, Parts(log, writers, clock), heard, self._put
        )
        self._held = Waiter()
        self._leader: Leader | None = None
        self._glance: LeaderGlance | None = None
        """None: the leader has taken an input since the last one."""
        self._mailbox: deque[LeaderInput] = deque()
        self._bell = asyncio.Event()
        self._alarm: asyncio.TimerHandle | None = None
        self._last_look: asyncio.TimerHandle | None = None
        self._tasks: asyncio.TaskGroup | None = None
        self._claimed: Takeover | None = None
        self._preparing: asyncio.Task[NoReturn] | None = None
        """Makes queues, if the group has queues."""
        self._stopped = False
        self._stop_asked = asyncio.Event()
        self.since_ms = clock.wall_ms()
        """When it began, by the wall clock."""
        self.lost = 0
        """Messages lost because the mailbox was full."""

    async def run(self, tasks: asyncio.TaskGroup) -> None:
        """Take over, load, lead; return when nothing is left to lead. Commits run in ``tasks``."""
        try:
            claimed = await claim(self._store, self.group.group_id, self._boot_id)
            await self._load(claimed)
        except PreconditionFailed:
            return
        except DiskFull:
            # A leader needs a durable epoch, and queues; borrowers ask for a leader again later.
            left = [given for given in self._mailbox if isinstance(given, Instructed)]
            self._mailbox = deque(left)
            if left:
                # Operations do not ask again, so their instructions are kept.
                await self._stops_before_retry()
            return
        self._tasks, self._claimed = tasks, claimed
        if has_queues(self.group):
            self._begin_lanes()
        try:
            await self._lead(claimed, tasks)
        finally:
            for timer in (self._alarm, self._last_look, self._preparing):
                if timer is not None:
                    timer.cancel()
            self._rehomings.end()

    def _begin_lanes(self) -> None:
        """From now on, make the queues of new topics."""
        if self._preparing is None and self._tasks is not None:
            name = f"queues of group {self.group.group_id}"
            self._preparing = self._tasks.create_task(self._lanes.run(), name=name)

    def receive(self, message: ToLeader) -> None:
        """Take a borrower's message; a full mailbox loses it."""
        if len(self._mailbox) >= LEADER_MAILBOX_MAX:
            self.lost += 1
            return
        self._put(Received(message, self._clock.now_ms()))

    def miss_session(self, session_id: bytes) -> None:
        """The session's client is gone without a word; its borrowers end next."""
        if self._leader is not None:
            self._lost_members.miss(session_id, self._leader, self._clock.now_ms())
            self._look_in_time()

    def _look_in_time(self) -> None:
        """Set a timer to look: without members no message comes that would cause a look."""
        by_ms = self._lost_members.told_by_ms
        if by_ms is None or self._last_look is not None:
            return
        delay_s = max(by_ms - self._clock.now_ms(), TAKE_OVER_LOOK_MS) / 1_000
        self._last_look = asyncio.get_running_loop().call_later(delay_s, self._look_at_last)

    def _look_at_last(self) -> None:
        self._last_look = None
        if self._leader is None or self._stopped:
            return
        self._lost_members.look(self._leader, self._clock.now_ms())
        self._look_in_time()

    def close_session(self, session_id: bytes, silent_ms: int | None) -> None:
        """The session's client is gone; ``silent_ms``: it may live, after a silence of so long."""
        self._put(SessionClosed(session_id, self._clock.now_ms(), silent_ms))

    def instruct(self, instruction: Instruction) -> None:
        """Take the instruction of an operation, which has stored it already."""
        self._put(Instructed(instruction, self._clock.now_ms()))

    def change_group(self, group: GroupRow) -> None:
        """The group's row changed. The operation that did it sends instructions for the rest."""
        self._row = group

    def change_topic(self, topic: Topic, *, removed: bool) -> None:
        """A topic appeared, changed or went."""
        if not topic.meets(self._filter):
            return
        if self._preparing is not None or has_queues(self.group):
            self._lanes.change(topic, removed)
        else:
            self._tell_topic(topic, removed)

    def _tell_topic(self, topic: Topic, removed: bool) -> None:
        now_ms = self._clock.now_ms()
        if removed:
            self._put(StreamsChanged(now_ms, gone=topic.streams()))
        else:
            present = present_streams(topic, self._catalogue, self.group)
            slicing = slicing_of(self._row, self._catalogue)
            self._put(StreamsChanged(now_ms, present=present, slicing=slicing))

    async def hold(self) -> Precondition | None:
        """Take all streams back and lend none, until `lend_again`; None if the leader ends first.

        The stored rows are then the whole state of the group. A commit that relies on that must
        have the returned precondition.
        """
        self._put(Hold(self._clock.now_ms()))
        if not await self._held.held() or self._claimed is None:
            return None
        return self._claimed.still_holds()

    async def lend_again(self, group: GroupRow) -> None:
        """Lend the streams with the queues that the group's row has now."""
        if self._held.ended:
            return
        self.group = self._row = group
        if has_queues(group):
            self._begin_lanes()
            for topic in self._catalogue.meeting(self._filter):
                await self._lanes.make_with_patience(topic)
        topics = self._catalogue.meeting(self._filter)
        lanes = await lanes_by_stream(self._store, self._catalogue, group, topics)
        slicing = slicing_of(group, self._catalogue)
        self._put(LendAgain(self._clock.now_ms(), lanes, slicing))

    def end_wait(self) -> None:
        """After `run`: end the wait of `hold`."""
        self._held.tell(held=False)

    def destroy(self) -> None:
        """The group was removed."""
        self._put(Destroyed(self._clock.now_ms()))

    def note_sessions_ending(self) -> None:
        """The daemon stops, and ends its sessions next."""
        self._put(SessionsEnding(self._clock.now_ms()))

    def stop(self) -> None:
        """Save the progress, as far as the disk has room, then return from `run`."""
        self._stop_asked.set()
        self._put(StopAsked(self._clock.now_ms()))

    def view(self) -> LeaderView | None:
        """The group as its leader has it now; None while it loads."""
        if self._leader is None or self._stopped:
            return None
        return view(self._leader, self._clock.now_ms())

    def glance(self) -> LeaderGlance | None:
        """A summary of the group; None while it loads.

        The same object again, until the leader has taken an input.
        """
        if self._leader is None or self._stopped:
            return None
        if self._glance is None:
            self._glance = glance(self._leader)
        return self._glance

    def progress(self) -> dict[StreamId, Progress]:
        """The progress of each stream; empty while it loads."""
        if self._leader is None or self._stopped:
            return {}
        return {stream: lent.progress for stream, lent in self._leader.streams.items()}

    def planned_hand_overs(self, moves_max: int) -> tuple[HandOver, ...]:
        """What a rebalance of so many moves would do now."""
        if self._leader is None or self._stopped:
            return ()
        return planned_hand_overs(self._leader, moves_max)

    def planned_shares(self, slicing: Slicing | None) -> tuple[HandOver, ...]:
        """What cutting the streams anew would move now."""
        if self._leader is None or self._stopped:
            return ()
        return planned_shares(self._leader, slicing)

    def unanswered(self) -> list[LeaderWanted]:
        """After `run`: requests for a leader that arrived when this one was ending."""
        return [
            given.message
            for given in self._mailbox
            if isinstance(given, Received) and isinstance(given.message, LeaderWanted)
        ]

    def untaken(self) -> list[Instruction]:
        """After `run`: instructions that arrived when this leader was ending."""
        return [given.instruction for given in self._mailbox if isinstance(given, Instructed)]

    async def _load(self, claimed: Takeover) -> None:
        group = self.group
        if has_queues(group):
            for topic in self._catalogue.meeting(self._filter):
                await self._lanes.make(topic)
        streams = await stored_streams(self._store, self._catalogue, self._log, group, LoopTurn())
        versions = await stored_versions(self._store, group)
        moves = await stored_moves(self._store, group)
        bans = await stored_bans(self._store, group.group_id, self._clock)
        self._leader = Leader(
            claimed.row.leader_epoch,
            owner_session=group.session_id,
            timing=self._timing,
            stream_sets=stream_sets_of(group),
        )
        # Changes that came while rows were read follow in the mailbox; repeating one is harmless.
        self._mailbox.appendleft(
            TookOver(
                self._clock.now_ms(),
                streams,
                claimed.restarted,
                versions,
                moves,
                bans,
                group.paused,
                slicing_of(self._row, self._catalogue),
            )
        )
        self._bell.set()

    async def _lead(self, claimed: Takeover, tasks: asyncio.TaskGroup) -> None:
        leader = self._leader
        assert leader is not None
        while not self._stopped:
            await self._bell.wait()
            self._bell.clear()
            while self._mailbox and not self._stopped:
                for _ in range(min(len(self._mailbox), ROUND_INPUTS_MAX)):
                    if self._stopped:
                        break
                    self._glance = None
                    given = self._mailbox.popleft()
                    for effect in step(leader, given)[1]:
                        self._carry_out(effect, claimed, tasks)
                    self._lost_members.look(leader, given.now_ms)
                await asyncio.sleep(0)

    def _carry_out(self, effect: LeaderEffect, claimed: Takeover, tasks: asyncio.TaskGroup) -> None:
        match effect:
            case Send(message):
                self._send(message)
            case Persist():
                name = f"commit of leader {self.group.group_id}"
                tasks.create_task(self._commit(effect, claimed), name=name)
            case WakeAt(at_ms):
                self._wake_at(at_ms)
            case Concluded(number):
                self._concluded(number)
            case Held():
                self._held.tell(held=True)
            case Rehome() | GoBack():
                self._rehomings.begin(effect, lambda job, name: tasks.create_task(job, name=name))
            case Stop():
                self._stopped = True
            case _:
                assert_never(effect)

    async def _commit(self, persist: Persist, claimed: Takeover) -> None:
        rows: list[tuple[int, list[Write]]] = []
        turn = LoopTurn()
        for record in persist.records:
            await turn.give_way()
            rows += rows_of(self.group, record)
        versions = version_writes(self.group, persist)
        beside = self._lost_members.beside()
        while True:
            # Rows of a removed topic are being deleted, and must not be written again after that.
            has = self._catalogue.has_storage_topic
            writes = [write for there, of_stream in rows if has(there) for write in of_stream]
            try:
                await self._store.commit([*writes, *versions, *beside], [claimed.still_holds()])
                break
            except PreconditionFailed:
                await self._lose_leadership()
                return
            except DiskFull:
                # The event needs room for a new row; the commit must not wait for its event.
                tried, beside = beside, []
                if not tried and await self._stops_before_retry():
                    return
        ends = tuple(self._ends(persist.measure))
        self._put(Committed(persist.commit_id, self._clock.now_ms(), ends))

    async def _stops_before_retry(self) -> bool:
        """Nothing was written: wait until there may be room, or this leader is to stop."""
        try:
            async with asyncio.timeout(FULL_DISK_RETRY_S):
                await self._stop_asked.wait()
        except TimeoutError:
            return False
        # Records whose acks were not stored are delivered again, marked.
        self._stopped = True
        self._bell.set()
        return True

    async def _lose_leadership(self) -> None:
        """Stop; if the group was removed, its members are told first."""
        if await self._store.read(GroupRow, (self.group.group_id,)) is None:
            self.destroy()
        else:
            self._stopped = True
            self._bell.set()

    def _ends(self, streams: tuple[StreamId, ...]) -> list[tuple[StreamId, int]]:
        ends: list[tuple[StreamId, int]] = []
        for stream in streams:
            try:
                ends.append((stream, self._log.bounds(stream).end))
            except StreamNotFound:
                # Its topic was removed meanwhile; the leader is notified of that too.
                continue
        return ends

    def _wake_at(self, at_ms: int) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        delay_s = max(at_ms - self._clock.now_ms(), 0) / 1_000
        self._alarm = asyncio.get_running_loop().call_later(delay_s, self._tick, at_ms)

    def _tick(self, at_ms: int) -> None:
        now_ms = self._clock.now_ms()
        if now_ms < at_ms:
            # The loop's clock is finer than ours: the timer may fire within the millisecond before.
            self._wake_at(at_ms)
            return
        self._put(Ticked(now_ms))

    def _put(self, given: LeaderInput) -> None:
        self._mailbox.append(given)
        self._bell.set()
