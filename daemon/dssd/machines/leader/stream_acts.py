"""What a leader does to its streams in one step: books, timers, messages.

`turn_stream` lets one stream take an event and carries out the acts that follow from it.
Invariant: after it, the books of members and the timers fit the state of the stream. This module
decides nothing about members (`members`) or about who should hold what (`rebalance`).
"""

from typing import assert_never

from dss_core.ids import StreamId
from dss_core.progress import Progress
from dssd.machines.leader import stream_sets
from dssd.machines.leader.commits import mark_dirty, take_committed
from dssd.machines.leader.events import Committed, Rehome
from dssd.machines.leader.hand_overs_under_way import note_stream
from dssd.machines.leader.lent_stream import ENDED_BY_DEADLINE, HELD, LentStream, StreamState
from dssd.machines.leader.moves_under_way import note_moved
from dssd.machines.leader.sharding import may_have, note_held, note_let_go
from dssd.machines.leader.state import Alarm, Holding, Leader, Member, Resend, StateDeadline
from dssd.machines.leader.stream import step as step_stream
from dssd.machines.leader.stream_events import (
    Act,
    GrantDecided,
    Released,
    Reported,
    ResendDue,
    Saved,
    StreamEvent,
)
from dssd.machines.leader.stream_set_state import StreamSets
from dssd.machines.leader.turn import LeaderTurn
from dssd.machines.messages import (
    BorrowerId,
    Grant,
    Invalidate,
    ProgressSaved,
    Revoke,
    Revoked,
)
from dssd.machines.queues import Queues, begun_as

STREAMS_A_REBALANCE_MS = 100
"""Between rebalances a group rests 1 ms for each so many of its streams. Otherwise deaths that come
one by one (each is acted on at once) could take more than a tenth of the daemon's time."""


def turn_stream(
    turn: LeaderTurn, lent: LentStream, event: StreamEvent, *, place: bool = True
) -> None:
    """Let the stream take the event, keep books and timers, carry out its acts."""
    state = turn.state
    before, holder_before, epoch_before = lent.state, lent.holder, lent.grant_epoch
    heir_before = lent.heir
    acts = step_stream(lent, event)
    if lent.heir != heir_before:
        _note_heir(state, lent, heir_before)
    if lent.state is not before or lent.grant_epoch != epoch_before:
        _note_state(turn, lent, before)
        if before in HELD and holder_before is not None:
            member = state.members.get(holder_before)
            if member is not None:
                member.streams.discard(lent.stream)
        if lent.state in HELD and lent.holder is not None:
            state.members[lent.holder].streams.add(lent.stream)
        _note_shard(turn, lent, before)
    for act in acts:
        if act is not Act.PLACE or place:
            _act(turn, lent, event, act)
    note_stream(turn, lent, event)


def _note_shard(turn: LeaderTurn, lent: LentStream, before: StreamState) -> None:
    if lent.state in HELD:
        if before not in HELD:
            note_held(turn.state, lent)
    elif before in HELD and note_let_go(turn.state, lent):
        rebalance_by(turn, turn.now_ms)


def _note_heir(state: Leader, lent: LentStream, before: BorrowerId | None) -> None:
    heir_before = state.members.get(before) if before is not None else None
    if heir_before is not None:
        heir_before.inherits.discard(lent.stream)
    if lent.heir is not None:
        state.members[lent.heir].inherits.add(lent.stream)


def _note_state(turn: LeaderTurn, lent: LentStream, before: StreamState) -> None:
    state = turn.state
    lent.since_ms = turn.now_ms
    if lent.state is StreamState.REHOMING:
        state.barrier.rehoming.add(lent.stream)
    else:
        state.barrier.rehoming.discard(lent.stream)
    if state.resend_ms.pop(lent.stream, None) is not None:
        state.timers.clear(Resend(lent.stream))
    if lent.state in ENDED_BY_DEADLINE:
        state.timers.set(StateDeadline(lent.stream), turn.now_ms + _within_ms(state, lent))
    elif before in ENDED_BY_DEADLINE:
        state.timers.clear(StateDeadline(lent.stream))


def _within_ms(state: Leader, lent: LentStream) -> int:
    """How long the holder may take to answer."""
    eviction = state.evictions.by_member.get(lent.holder or b"")
    if eviction is None or eviction.grace_ms is None:
        return state.timing.revoke_deadline_ms
    return max(eviction.grace_ms, state.timing.eviction_answer_ms)


def _act(turn: LeaderTurn, lent: LentStream, event: StreamEvent, act: Act) -> None:
    match act:
        case Act.SAVE_SOON | Act.SAVE_NOW:
            mark_dirty(turn, lent.stream)
            turn.state.urgent |= act is Act.SAVE_NOW
        case Act.SEND_GRANT | Act.SEND_REVOKE | Act.SEND_REVOKED:
            _arm_resend(turn, lent.stream)
            if turn.state.stream_sets is None:
                _send_to_holder(turn, lent, act)
            else:
                _say_in_set(turn, turn.state.stream_sets, lent, event, act)
        case Act.SEND_SAVED:
            _send_to_holder(turn, lent, act)
        case Act.SEND_INVALIDATE:
            assert isinstance(event, Reported)
            report = event.report
            invalidate(turn, event.borrower_id, lent.stream, report.grant_epoch, "not the holder")
        case Act.PLACE:
            place(turn, lent)
        case Act.SHARE_ANEW:
            rebalance_by(turn, turn.now_ms + turn.state.timing.gather_ms)
        case Act.JUDGE_CHILDREN:
            turn.state.barrier.turned.append(lent.stream)
        case Act.NOTE_MOVED | Act.REHOME:
            assert isinstance(event, Saved)
            _note_durable(turn, lent, event, act)
        case _:
            assert_never(act)


def _note_durable(turn: LeaderTurn, lent: LentStream, event: Saved, act: Act) -> None:
    state = turn.state
    if act is Act.NOTE_MOVED:
        note_moved(turn, lent, event.moved_by)
    elif state.holding not in (Holding.FENCING, Holding.HELD):
        # Else it begins with `LendAgain`: until then queues must not change.
        turn.effects.append(Rehome(lent.stream, lent.grant_epoch, lent.progress, lent.queues))


def _say_in_set(
    turn: LeaderTurn, sets: StreamSets, lent: LentStream, event: StreamEvent, act: Act
) -> None:
    if act is Act.SEND_REVOKED and stream_sets.accept(sets, lent):
        assert lent.holder is not None
        turn_stream(turn, lent, Released(lent.holder, lent.grant_epoch))
    elif act is Act.SEND_REVOKED and not stream_sets.tells(sets, lent):
        _send_to_holder(turn, lent, act)
    elif stream_sets.touch(sets, lent, again=isinstance(event, ResendDue)):
        turn.state.urgent = True


def _send_to_holder(turn: LeaderTurn, lent: LentStream, act: Act) -> None:
    state, holder = turn.state, lent.holder
    assert holder is not None
    epoch = state.leader_epoch
    match act:
        case Act.SEND_GRANT:
            turn.grants.setdefault(holder, []).append(lent)
        case Act.SEND_REVOKE:
            ends_ms = state.timers.at_ms(StateDeadline(lent.stream))
            left_ms = state.timing.revoke_deadline_ms
            if ends_ms is not None:
                left_ms = max(ends_ms - turn.now_ms, 0)
            turn.send(Revoke(holder, epoch, lent.stream, lent.grant_epoch, left_ms))
        case Act.SEND_REVOKED:
            turn.send(Revoked(holder, epoch, *_saved(lent)))
        case _:
            turn.send(ProgressSaved(holder, epoch, *_saved(lent)))


def _saved(lent: LentStream) -> tuple[StreamId, int, Progress, Queues]:
    heard = begun_as(lent.saved_queues, lent.queues)
    return lent.stream, lent.grant_epoch, lent.saved, heard


def send_grants(turn: LeaderTurn) -> None:
    """Let the grants of this step leave, one message a borrower."""
    state = turn.state
    for borrower_id, all_lent in turn.grants.items():
        streams = tuple(
            lent.granted(state.pause)
            for lent in all_lent
            if lent.state is StreamState.GRANTING and lent.holder == borrower_id
        )
        if streams:
            turn.send(Grant(borrower_id, state.leader_epoch, streams, state.timing.lease_ms))


def note_committed(turn: LeaderTurn, given: Committed) -> None:
    """Tell the streams of a commit that it is durable."""
    for lent, saved in take_committed(turn, given):
        turn_stream(turn, lent, saved)


def invalidate(
    turn: LeaderTurn, borrower_id: BorrowerId, stream: StreamId, grant_epoch: int, reason: str
) -> None:
    """Fence one grant at a borrower."""
    turn.send(Invalidate(borrower_id, turn.state.leader_epoch, reason, stream, grant_epoch))


def _arm_resend(turn: LeaderTurn, stream: StreamId) -> None:
    state = turn.state
    delay_ms = state.resend_ms.get(stream, state.timing.resend_first_ms)
    state.resend_ms[stream] = min(2 * delay_ms, state.timing.resend_max_ms)
    state.timers.set(Resend(stream), turn.now_ms + delay_ms)


def place(turn: LeaderTurn, lent: LentStream) -> None:
    """A stream is free: lend it to its heir, or share it out."""
    heir = turn.state.members.get(lent.heir) if lent.heir is not None else None
    if heir is not None:
        lend(turn, lent, heir)
    else:
        rebalance_by(turn, turn.now_ms)


def lend(turn: LeaderTurn, lent: LentStream, member: Member) -> None:
    """Lend a free stream to a member. While nothing is lent, or another member has to let go of its
    shard first, it stays free, and keeps its heir.

    While the daemon ends its sessions, a stream stays with its last session: the next daemon keeps
    it for that session, whose client may still hand out what it has.
    """
    if turn.state.holding is not Holding.NOTHING or turn.state.sessions_ending:
        return
    if not may_have(turn.state, lent, member):
        return
    turn_stream(turn, lent, GrantDecided(member.borrower_id, member.session_id))
    if turn.state.stream_sets is not None and lent.state is StreamState.GRANTING:
        stream_sets.touch(turn.state.stream_sets, lent, again=False)


def rebalance_by(turn: LeaderTurn, at_ms: int) -> None:
    """Rebalance at that time, or at an earlier planned one; later in a large group."""
    state = turn.state
    if state.rebalanced_ms is not None:
        rest_ms = len(state.streams) // STREAMS_A_REBALANCE_MS
        at_ms = max(at_ms, state.rebalanced_ms + rest_ms)
    known_ms = state.timers.at_ms(Alarm.REBALANCE)
    if known_ms is None or at_ms < known_ms:
        state.timers.set(Alarm.REBALANCE, at_ms)
