"""The registry of leaders: finds or starts the leader of a group, and carries messages.

Invariant: at most one live leader per group in this process, each in one task of this registry's
task group. The next `LeaderWanted` starts a leader that ended. A group without members loses its
leader after a while, so it costs nothing. The registry must not know what leaders do.
"""

import asyncio
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Collection
from types import TracebackType
from typing import Self

from dss_core.errors import DssError
from dss_core.ids import StreamId
from dss_core.progress import Progress
from dssd.clock import Clock
from dssd.events.teller import Teller, Unheard
from dssd.leaders.actor import LeaderActor
from dssd.leaders.borrower_mailboxes import BorrowerMailboxes
from dssd.leaders.filtered_lag import CountBudget
from dssd.leaders.groups import Groups
from dssd.leaders.lag import (
    GroupSurvey,
    glance_from_rows,
    progress_from_rows,
    stream_from_rows,
    survey_from_rows,
    survey_from_view,
    view_from_rows,
)
from dssd.limits import FULL_DISK_RETRY_S
from dssd.log.port import Log
from dssd.loop_yield import LoopTurn
from dssd.machines.leader.events import Instruction, LeaderGlance, LeaderView, StreamView
from dssd.machines.leader.hand_over_events import HandOver
from dssd.machines.leader.slicing import Slicing
from dssd.machines.leader.timing import LeaderTiming
from dssd.machines.messages import BorrowerId, Invalidate, LeaderWanted, ToBorrower, ToLeader
from dssd.queues.writers import QueueWriters
from dssd.store.port import Precondition, PreconditionFailed, Store
from dssd.store.rows import GroupRow
from dssd.topics.catalogue import Catalogue, Topic

BOOT_ID_BYTES = 16


class Registry:
    """Implements `dssd.leaders.mailboxes.Mailboxes`.

    ``async with registry:`` runs its leaders; leaving it stops them with all progress saved, so
    leave it after all sessions have ended.
    """

    def __init__(
        self,
        store: Store,
        groups: Groups,
        catalogue: Catalogue,
        log: Log,
        clock: Clock,
        *,
        boot_id: bytes | None = None,
        timing: LeaderTiming | None = None,
        teller: Teller | None = None,
    ) -> None:
        self._store = store
        self._groups = groups
        self._catalogue = catalogue
        self._log = log
        self.writers = QueueWriters(log)
        """All appends to queues of groups go through these."""
        catalogue.watch(self.writers.topic_changed, internal=True)
        self._clock = clock
        self._boot_id = boot_id or secrets.token_bytes(BOOT_ID_BYTES)
        self._timing = timing or LeaderTiming()
        self._teller = teller or Unheard()
        self._borrower_mailboxes = BorrowerMailboxes()
        self._actors: dict[int, LeaderActor] = {}
        self._leading: dict[int, asyncio.Task[None]] = {}
        self._leader_changes: Counter[int] = Counter()
        self._tasks = asyncio.TaskGroup()
        self._handing_over: asyncio.Task[None] | None = None
        self._stop_watching: list[Callable[[], None]] = []
        self._sessions_ending = False
        self._stopping = False
        self._concluded: Callable[[int], None] | None = None
        self._unended: dict[int, dict[int, list[Instruction]]] = {}
        """Instructions that are not concluded, by group and operation."""

    async def __aenter__(self) -> Self:
        """Begin to carry messages."""
        await self._tasks.__aenter__()
        self._handing_over = self._tasks.create_task(
            self._borrower_mailboxes.run(), name="borrower mailboxes"
        )
        self._stop_watching = [
            self._catalogue.watch(self._topic_changed),
            self._groups.watch_removed(self._group_removed),
            self._groups.watch_changed(self._group_changed),
        ]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop the leaders, each with its progress saved, then the mailboxes.

        Raises:
            BaseExceptionGroup: a leader failed.
        """
        self._stopping = True
        for stop in self._stop_watching:
            stop()
        if error is None:
            for actor in self._actors.values():
                actor.stop()
            if self._leading:
                await asyncio.wait(self._leading.values())
        if self._handing_over is not None:
            self._handing_over.cancel()
        await self._tasks.__aexit__(kind, error, trace)

    def attach_borrower(
        self, borrower_id: BorrowerId, receive: Callable[[ToBorrower], None]
    ) -> Callable[[], None]:
        """Deliver what is sent to this borrower to ``receive``; returns how to stop."""
        return self._borrower_mailboxes.attach(borrower_id, receive)

    def to_leader(self, group_id: int, message: ToLeader) -> None:
        """Send to the leader of the group; `LeaderWanted` starts it where there is none."""
        actor = self._actors.get(group_id)
        if actor is None and isinstance(message, LeaderWanted):
            actor = self._started(group_id, message)
        if actor is not None:
            actor.receive(message)

    def session_missed(self, session_id: bytes, group_ids: Collection[int]) -> None:
        """A client vanished. Call this before its borrowers send their final reports."""
        for group_id in group_ids:
            actor = self._actors.get(group_id)
            if actor is not None:
                actor.miss_session(session_id)

    def session_closed(
        self, session_id: bytes, group_ids: Collection[int], silent_ms: int | None
    ) -> None:
        """A client's connection closed: its borrowers end at once, in each of the groups.

        ``silent_ms``: the client may live, and hand out what it has, after a silence of so long.
        Call this after each borrower's `Disconnect` was sent, so that final reports count.
        """
        for group_id in group_ids:
            actor = self._actors.get(group_id)
            if actor is not None:
                actor.close_session(session_id, silent_ms)

    def note_sessions_ending(self) -> None:
        """The daemon stops. Call it before it ends its sessions."""
        self._sessions_ending = True
        for actor in self._actors.values():
            actor.note_sessions_ending()

    def snapshot(self, group_id: int) -> LeaderView | None:
        """The live leader's view of its group, or None where there is no leader."""
        actor = self._actors.get(group_id)
        return None if actor is None else actor.view()

    def glance(self, group_id: int) -> LeaderGlance | None:
        """A summary of a live group, or None where there is no leader."""
        actor = self._actors.get(group_id)
        return None if actor is None else actor.glance()

    async def stored_glance(self, group: GroupRow) -> LeaderGlance:
        """The summary of a group without a leader, from its rows.

        It stays as it is until a leader has started and ended, or a topic changes.
        """
        return await glance_from_rows(self._store, group, self._catalogue, LoopTurn())

    async def view(self, group: GroupRow, turn: LoopTurn) -> LeaderView:
        """Members and streams of a group, live or as stored; starts no leader."""
        live = self.snapshot(group.group_id)
        return live or await view_from_rows(self._store, group, self._catalogue, turn)

    def leader_changes(self, group_id: int) -> int:
        """How often a leader of the group started or ended."""
        return self._leader_changes[group_id]

    def leader_since_ms(self, group_id: int) -> int | None:
        """Since when the group has its present leader, by the wall clock; None: it has none."""
        actor = self._actors.get(group_id)
        return None if actor is None else actor.since_ms

    def live_progress(self, group_id: int) -> dict[StreamId, Progress]:
        """The progress as the live leader has it; empty where there is no leader."""
        actor = self._actors.get(group_id)
        return {} if actor is None else actor.progress()

    async def survey(
        self, group: GroupRow, turn: LoopTurn | None = None, budget: CountBudget | None = None
    ) -> GroupSurvey:
        """The state of the group, for people; starts no leader.

        Other tasks run in between, by the turn of a caller that asks for many groups. Within the
        budget the log is read for an exact lag.
        """
        turn = turn or LoopTurn()
        live = self.snapshot(group.group_id)
        catalogue, log, wall_ms = self._catalogue, self._log, self._clock.wall_ms()
        if live is not None:
            return await survey_from_view(live, group, catalogue, log, wall_ms, turn, budget)
        return await survey_from_rows(self._store, group, catalogue, log, wall_ms, turn, budget)

    async def stream(self, group: GroupRow, stream: StreamId) -> StreamView:
        """One stream of the group; starts no leader."""
        live = self.snapshot(group.group_id)
        found = (
            None if live is None else next((v for v in live.streams if v.stream == stream), None)
        )
        return found or await stream_from_rows(self._store, group, stream, self._catalogue)

    async def progress(
        self, group: GroupRow, storage_topic_ids: Collection[int]
    ) -> dict[StreamId, Progress]:
        """The group's progress in streams of the storage topics; starts no leader.

        A stream without progress is left out.
        """
        live = self.snapshot(group.group_id)
        if live is None:
            return await progress_from_rows(self._store, group, storage_topic_ids)
        return {view.stream: view.progress for view in live.streams}

    def instruct(self, group_id: int, instruction: Instruction) -> None:
        """Let the leader of the group do what an operation asks; starts it where there is none.

        If a leader ends before it concludes, its next leader gets the instruction again; after a
        stop of the daemon, the next daemon does it.
        """
        if self._stopping or not self._groups.has(group_id):
            return
        asked = self._unended.setdefault(group_id, {}).setdefault(instruction.number, [])
        asked.append(instruction)
        actor = self._actors.get(group_id)
        if actor is None:
            self._start_for_operations(group_id)
        else:
            actor.instruct(instruction)

    async def while_held(
        self, group_id: int, change: Callable[[Precondition], Awaitable[None]]
    ) -> None:
        """Call ``change`` while nobody holds a stream of the group. It gets the precondition for
        commits that rely on that. Then all streams are lent again by the group's row.

        Raises:
            GroupDestroyed: it was removed.
            DssError: as ``change`` does.
        """
        while not await self._changed_while_held(group_id, change):  # noqa: ASYNC110 - it ended
            await asyncio.sleep(FULL_DISK_RETRY_S)

    async def _changed_while_held(
        self, group_id: int, change: Callable[[Precondition], Awaitable[None]]
    ) -> bool:
        """Whether ``change`` was called; else the leader ended: disk full, or the group is gone."""
        actor = self._actors.get(group_id) or self._start(self._groups.get(group_id))
        held = await actor.hold()
        if held is None:
            return False
        try:
            await change(held)
        except PreconditionFailed:
            return False
        finally:
            await actor.lend_again(self._groups.as_it_is(actor.group))
        return True

    def planned_hand_overs(self, group_id: int, moves_max: int) -> tuple[HandOver, ...]:
        """What a rebalance of so many moves would do now; none where there is no leader."""
        actor = self._actors.get(group_id)
        return () if actor is None else actor.planned_hand_overs(moves_max)

    def planned_shares(self, group_id: int, slicing: Slicing | None) -> tuple[HandOver, ...]:
        """What cutting the streams anew would move now; nothing where there is no leader."""
        actor = self._actors.get(group_id)
        return () if actor is None else actor.planned_shares(slicing)

    def watch_concluded(self, concluded: Callable[[int], None]) -> None:
        """Call ``concluded`` with the number of each operation that a leader has done."""
        self._concluded = concluded

    def _note_concluded(self, number: int) -> None:
        for group_id, asked in list(self._unended.items()):
            asked.pop(number, None)
            if not asked:
                del self._unended[group_id]
        if self._concluded is not None:
            self._concluded(number)

    def _started(self, group_id: int, wanted: LeaderWanted) -> LeaderActor | None:
        if self._stopping:
            return None
        try:
            group = self._groups.get(group_id)
        except DssError as error:
            epoch = wanted.leader_epoch
            self._borrower_mailboxes.put(Invalidate(wanted.borrower_id, epoch, error.code))
            return None
        return self._start(group)

    def _start_for_operations(self, group_id: int) -> None:
        """Start a leader; it gets all instructions that are not concluded."""
        if not self._stopping and group_id not in self._actors and self._groups.has(group_id):
            self._start(self._groups.get(group_id))

    def _start(self, group: GroupRow) -> LeaderActor:
        group_id = group.group_id
        actor = LeaderActor(
            group,
            store=self._store,
            catalogue=self._catalogue,
            log=self._log,
            clock=self._clock,
            boot_id=self._boot_id,
            send=self._borrower_mailboxes.put,
            concluded=self._note_concluded,
            timing=self._timing,
            teller=self._teller,
            writers=self.writers,
        )
        self._actors[group_id] = actor
        self._leader_changes[group_id] += 1
        if self._sessions_ending:
            actor.note_sessions_ending()
        for asked in self._unended.get(group_id, {}).values():
            for instruction in asked:
                actor.instruct(instruction)
        name = f"leader of group {group_id}"
        self._leading[group_id] = self._tasks.create_task(self._lead(actor), name=name)
        return actor

    async def _lead(self, actor: LeaderActor) -> None:
        group_id = actor.group.group_id
        try:
            await actor.run(self._tasks)
        finally:
            del self._actors[group_id]
            del self._leading[group_id]
            actor.end_wait()
            if self._groups.has(group_id):
                self._leader_changes[group_id] += 1
        for wanted in actor.unanswered():
            self.to_leader(group_id, wanted)
        if actor.untaken():
            self._start_for_operations(group_id)

    def _topic_changed(self, topic: Topic, removed: bool) -> None:
        for actor in self._actors.values():
            actor.change_topic(topic, removed=removed)

    def _group_changed(self, group: GroupRow) -> None:
        actor = self._actors.get(group.group_id)
        if actor is not None:
            actor.change_group(group)

    def _group_removed(self, group: GroupRow) -> None:
        self._unended.pop(group.group_id, None)
        self._leader_changes.pop(group.group_id, None)
        actor = self._actors.get(group.group_id)
        if actor is not None:
            actor.destroy()
