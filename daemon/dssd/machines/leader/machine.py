"""The leader of a group: who its members are, and which of them holds which stream.

docs/protocol.md has the whole protocol.

The leader itself only loads, leads and stops. `stream` has the states of one stream, and
`stream_acts` carries out the acts that follow. Rules:

1. *Persist before send.* A `Grant` or a `Revoked` is sent only after the commit that it depends on:
   a `Persist` that was answered by `Committed`. One commit at a time: later changes go into the
   next, so a stream that is not dirty after a commit is durable as it stands.
2. Reports gather for 50 ms, or twice the last commit's duration. A change that somebody waits for
   (a grant, a final report) is committed at once, together with the gathered reports.
3. Each transient state of each stream has its own resend and its own deadline; each member has its
   own lease, extended by each of its messages. No timer depends on the traffic of others.
4. Joins and leaves gather for 200 ms. A death is acted on at once, except that a large group rests
   between two rebalances. The moves of a rebalance are begun in portions (`rebalance`).
5. After a takeover streams are kept for those who held them (docs/protocol.md, "Failover and
   restart"). Where the daemon restarted, a stream that a session held is kept for that session, for
   0.67 L, 4 s with a lease of 6 s. Where only the leader is new, a stream whose last grant did not
   end exactly is kept for its holder, for L. Others get only the rest, and nothing is revoked
   meanwhile.
6. A message of an older leader epoch counts only for grants whose epochs still match. A borrower
   that is no member is asked to present itself if it knows an older leader, else it is invalidated.
7. A borrower that is gone does not come back: a late request does not make it a member again.
8. A member that is leaving gives back what it holds, and gets nothing more.
9. Without members for 30 s, with nothing left to save and no stream kept for a holder, it stops.

`step` is total over `TRANSITIONS` (leader state, input) and `receiving.MESSAGES` (message). Who is
a member is in `members`, what a commit holds in `commits`. A step updates the state in place, for a
group may have tens of thousands of streams. Its cost grows with its changes, which are bounded
(`COMMIT_STREAMS_MAX`, `MOVES_A_STEP_MAX`, `TIMERS_A_STEP_MAX`). Only a takeover and the shares of a
rebalance look at all streams of the group; only the end of a holder and its presentation to a new
leader touch all streams of that holder. docs/proof/scale.md has the costs of steps.
"""

from collections.abc import Callable, Mapping
from typing import assert_never

from dss_core.errors import GroupDestroyed
from dss_core.ids import StreamId
from dss_core.progress import Progress
from dssd.machines.leader import barrier, going_back, pausing, stream_sets
from dssd.machines.leader.commits import commit_if_due, mark_dirty
from dssd.machines.leader.events import (
    Committed,
    Destroyed,
    Hold,
    Instructed,
    LeaderEffect,
    LeaderInput,
    LendAgain,
    Received,
    Rehomed,
    SessionClosed,
    SessionsEnding,
    Stop,
    StopAsked,
    StoredStream,
    StreamsChanged,
    Ticked,
    TookOver,
    WakeAt,
    WentBack,
)
from dssd.machines.leader.evictions import end_ban, end_evicted, keep_out
from dssd.machines.leader.hand_overs import begin_hand_overs
from dssd.machines.leader.hand_overs_under_way import forget_hand_over
from dssd.machines.leader.holding_back import go_on, hold, is_holding, lend_again
from dssd.machines.leader.instructions import (
    begin_postponed,
    take_instruction,
    take_pending_moves,
    void_postponed,
)
from dssd.machines.leader.lent_stream import HELD, LentStream, StreamState
from dssd.machines.leader.members import close_session, remove_member
from dssd.machines.leader.moves_under_way import forget_moves
from dssd.machines.leader.rebalance import begin_moves, rebalance_if_due, share_by
from dssd.machines.leader.receiving import receive
from dssd.machines.leader.sharding import conclude_if_shared, forget, slice_anew
from dssd.machines.leader.state import (
    Alarm,
    BanEnds,
    ForgetDeparted,
    KeptFor,
    Leader,
    LeaderState,
    MemberLease,
    Resend,
    StateDeadline,
    TellPause,
    Timer,
)
from dssd.machines.leader.stream_acts import (
    invalidate,
    note_committed,
    rebalance_by,
    send_grants,
    turn_stream,
)
from dssd.machines.leader.stream_events import (
    HolderLost,
    Overdue,
    ResendDue,
    ReserveEnded,
    Sealed,
)
from dssd.machines.leader.turn import LeaderTurn
from dssd.machines.messages import (
    Invalidate,
    Pause,
)

TIMERS_A_STEP_MAX = 200
"""Timers that a leader looks at in one step, most of them resends: measured 9 µs each."""


def step(state: Leader, given: LeaderInput) -> tuple[Leader, list[LeaderEffect]]:
    """Take one input: the state, updated in place and returned, and what to do, in order."""
    turn = LeaderTurn(state, given.now_ms)
    TRANSITIONS[state.state, type(given)](turn, given)
    if state.state is LeaderState.LEADING:
        # First, as they change the shares: evicted members get none, opened streams are shared out.
        barrier.go_on(turn)
        begin_postponed(turn)
        rebalance_if_due(turn)
        end_evicted(turn)
        pausing.conclude_if_obeyed(turn)
        going_back.go_on(turn)
        go_on(turn)
        conclude_if_shared(turn)
    send_grants(turn)
    _speak_of_sets(turn)
    if state.state in (LeaderState.LEADING, LeaderState.STOPPING):
        commit_if_due(turn)
        _stop_if_saved(turn)
    wake_ms = state.timers.next_ms()
    if wake_ms is not None and wake_ms != state.wake_ms:
        turn.effects.append(WakeAt(wake_ms))
    state.wake_ms = wake_ms
    return state, turn.effects


def _speak_of_sets(turn: LeaderTurn) -> None:
    state = turn.state
    if state.stream_sets is not None and state.state is LeaderState.LEADING:
        stream_sets.offer_first(state, state.stream_sets)
        for message in stream_sets.messages(state, state.stream_sets, turn.now_ms):
            turn.send(message)


# Takeover


def _take_over(turn: LeaderTurn, given: TookOver) -> None:
    state = turn.state
    state.state = LeaderState.LEADING
    for stored in given.streams:
        lent = LentStream(stored)
        lent.since_ms = given.now_ms
        # Without a session no borrower comes back for it, even if its last grant left doubt.
        kept = stored.session_id is not None and (given.restarted or stored.borrower_id is not None)
        lent.reserved = kept and lent.state is StreamState.FREE
        state.streams[stored.stream] = lent
    state.order = tuple(sorted(state.streams))
    slice_anew(state, given.slicing)
    if state.stream_sets is not None:
        versions = ((each.session_id, each.version) for each in given.versions)
        state.stream_sets.counters = {session: at for session, at in versions if at is not None}
    if any(lent.reserved for lent in state.streams.values()):
        state.reserve = KeptFor.FOR_SESSIONS if given.restarted else KeptFor.FOR_HOLDERS
        kept_ms = state.timing.reserve_ms if given.restarted else state.timing.lease_ms
        state.timers.set(Alarm.RESERVE, given.now_ms + kept_ms)
    state.timers.set(Alarm.IDLE, given.now_ms + state.timing.idle_ms)
    for ban in given.bans:
        keep_out(turn, ban)
    state.pause = Pause(paused=given.paused)
    state.paused_ms = given.now_ms
    going_back.take_pending(turn, given.moves)
    barrier.judge_all(turn)
    take_pending_moves(turn, given.moves)


def _end_reserve(turn: LeaderTurn) -> None:
    state = turn.state
    # The doubt of a session's last grant is recorded; a holder may have handed out more.
    ended = HolderLost() if state.reserve is KeptFor.FOR_HOLDERS else ReserveEnded()
    state.reserve = KeptFor.NOTHING
    state.timers.clear(Alarm.RESERVE)
    for lent in state.streams.values():
        if lent.reserved:
            turn_stream(turn, lent, ended)
    rebalance_by(turn, turn.now_ms)


# Streams


def _change_streams(turn: LeaderTurn, given: StreamsChanged) -> None:
    state = turn.state
    for present in given.present:
        lent = state.streams.get(present.stream)
        if lent is None:
            born = StoredStream(
                present.stream,
                Progress(0),
                0,
                0,
                present.sealed_end,
                queues=present.queues,
                parents=present.parents,
            )
            lent = state.streams[present.stream] = LentStream(born)
            lent.since_ms = turn.now_ms
            rebalance_by(turn, turn.now_ms)
        elif present.sealed_end is not None and lent.sealed_end is None:
            turn_stream(turn, lent, Sealed(present.sealed_end))
    for stream in given.gone:
        _forget_stream(turn, stream)
    state.order = tuple(sorted(state.streams))
    if given.slicing is not None:
        share_by(turn, given.slicing)
    # After slicing, so that opened streams are lent as parts of their shards.
    barrier.judge_all(turn)


def _forget_stream(turn: LeaderTurn, stream: StreamId) -> None:
    state = turn.state
    lent = state.streams.pop(stream, None)
    if lent is None:
        return
    if lent.state in HELD and lent.holder is not None:
        state.members[lent.holder].streams.discard(stream)
        invalidate(turn, lent.holder, stream, lent.grant_epoch, "topic removed")
    if lent.heir is not None:
        state.members[lent.heir].inherits.discard(stream)
    forget(state, lent)
    state.dirty.pop(stream, None)
    state.barrier.rehoming.discard(stream)
    going_back.forget(turn, stream)
    state.timers.clear(Resend(stream))
    state.timers.clear(StateDeadline(stream))
    state.resend_ms.pop(stream, None)
    forget_moves(turn, stream)
    forget_hand_over(turn, stream)
    rebalance_by(turn, turn.now_ms)


# Time and the end


def _tick(turn: LeaderTurn, given: Ticked) -> None:
    # The wake-up came: ask for the next one anew.
    turn.state.wake_ms = None
    for timer in turn.state.timers.each_due(given.now_ms, TIMERS_A_STEP_MAX):
        if turn.state.state is LeaderState.LEADING:
            _fire(turn, timer)


def _fire(turn: LeaderTurn, timer: Timer) -> None:
    state = turn.state
    match timer:
        case MemberLease(borrower_id):
            member = state.members[borrower_id]
            remove_member(turn, member, rebalance_at_ms=turn.now_ms)
            turn.send(Invalidate(borrower_id, state.leader_epoch, "lease ended"))
        case Resend(stream):
            turn_stream(turn, state.streams[stream], ResendDue())
        case ForgetDeparted(borrower_id):
            state.departed.discard(borrower_id)
            state.evictions.ended.pop(borrower_id, None)
        case BanEnds(client_id):
            end_ban(turn, client_id)
        case StateDeadline(stream):
            turn_stream(turn, state.streams[stream], Overdue())
        case TellPause(borrower_id):
            pausing.tell_again(turn, borrower_id)
        case Alarm():
            _ring(turn, timer)
        case _:
            assert_never(timer)


def _ring(turn: LeaderTurn, alarm: Alarm) -> None:
    match alarm:
        case Alarm.RESERVE:
            _end_reserve(turn)
        case Alarm.IDLE:
            _stop_idle(turn)
        case Alarm.REBALANCE:
            rebalance_by(turn, turn.now_ms)
        case Alarm.MOVE:
            begin_moves(turn)
        case Alarm.HAND_OVER:
            begin_hand_overs(turn)
        case Alarm.COMMIT | Alarm.SILENCE:
            # The alarm is taken out: the step ends with the commit, or concludes the pause.
            pass
        case _:
            assert_never(alarm)


def _stop_idle(turn: LeaderTurn) -> None:
    """Stop after a long time without members: no session comes back for what it held."""
    state = turn.state
    busy = state.moving or state.barrier.rehoming
    if busy or state.reserve is not KeptFor.NOTHING or is_holding(state):
        # Last holders may still hand out records and come back; moves end with the reserve; and
        # a `Hold` is followed by `LendAgain`.
        state.timers.set(Alarm.IDLE, turn.now_ms + state.timing.commit_ms)
        return
    void_postponed(turn)
    for lent in state.streams.values():
        if lent.session_id is not None or lent.pinned_session_id is not None:
            lent.session_id = lent.pinned_session_id = None
            lent.grant_unsaved = True
            mark_dirty(turn, lent.stream)
    if state.stream_sets is not None:
        stream_sets.forget_sessions(state.stream_sets)
    unsaved = state.dirty or state.is_committing() or stream_sets.is_waiting(state)
    if unsaved or state.pausing:
        state.urgent = True
        state.timers.set(Alarm.IDLE, turn.now_ms + state.timing.commit_ms)
        return
    _stop(turn, "idle")


def _destroy(turn: LeaderTurn, given: Destroyed) -> None:
    state = turn.state
    for borrower_id in state.members:
        turn.send(Invalidate(borrower_id, state.leader_epoch, GroupDestroyed.code))
    _stop(turn, "destroyed")


def _note_sessions_ending(turn: LeaderTurn, given: SessionsEnding) -> None:
    turn.state.sessions_ending = True


def _begin_stop(turn: LeaderTurn, given: StopAsked) -> None:
    turn.state.state = LeaderState.STOPPING
    turn.state.urgent = True


def _stop_if_saved(turn: LeaderTurn) -> None:
    state = turn.state
    if state.state is LeaderState.STOPPING:
        state.urgent = True
        if not state.dirty and not state.is_committing():
            _stop(turn, "asked")


def _stop(turn: LeaderTurn, reason: str) -> None:
    state = turn.state
    state.state = LeaderState.STOPPED
    state.timers = type(state.timers)()
    turn.effects.append(Stop(reason))


def _stop_unloaded(turn: LeaderTurn, given: Destroyed | StopAsked) -> None:
    _stop(turn, "never loaded")


def ignore(turn: LeaderTurn, given: object) -> None:
    """Nothing happens, and that is meant."""


_S = LeaderState

TRANSITIONS: Mapping[tuple[LeaderState, type[LeaderInput]], Callable[..., None]] = {
    (_S.LOADING, TookOver): _take_over,
    (_S.LOADING, Received): ignore,
    (_S.LOADING, SessionClosed): ignore,
    (_S.LOADING, StreamsChanged): ignore,
    (_S.LOADING, Committed): ignore,
    (_S.LOADING, Instructed): ignore,
    (_S.LOADING, Hold): ignore,
    (_S.LOADING, LendAgain): ignore,
    (_S.LOADING, Rehomed): ignore,
    (_S.LOADING, WentBack): ignore,
    (_S.LOADING, Destroyed): _stop_unloaded,
    (_S.LOADING, SessionsEnding): _note_sessions_ending,
    (_S.LOADING, StopAsked): _stop_unloaded,
    (_S.LOADING, Ticked): ignore,
    (_S.LEADING, TookOver): ignore,
    (_S.LEADING, Received): receive,
    (_S.LEADING, SessionClosed): close_session,
    (_S.LEADING, StreamsChanged): _change_streams,
    (_S.LEADING, Committed): note_committed,
    (_S.LEADING, Instructed): take_instruction,
    (_S.LEADING, Hold): hold,
    (_S.LEADING, LendAgain): lend_again,
    (_S.LEADING, Rehomed): barrier.take_rehomed,
    (_S.LEADING, WentBack): going_back.take_went_back,
    (_S.LEADING, Destroyed): _destroy,
    (_S.LEADING, SessionsEnding): _note_sessions_ending,
    (_S.LEADING, StopAsked): _begin_stop,
    (_S.LEADING, Ticked): _tick,
    (_S.STOPPING, TookOver): ignore,
    (_S.STOPPING, Received): ignore,
    (_S.STOPPING, SessionClosed): ignore,
    (_S.STOPPING, StreamsChanged): ignore,
    (_S.STOPPING, Committed): note_committed,
    (_S.STOPPING, Instructed): ignore,
    (_S.STOPPING, Hold): ignore,
    (_S.STOPPING, LendAgain): ignore,
    (_S.STOPPING, Rehomed): ignore,
    (_S.STOPPING, WentBack): ignore,
    (_S.STOPPING, Destroyed): _destroy,
    (_S.STOPPING, SessionsEnding): ignore,
    (_S.STOPPING, StopAsked): ignore,
    (_S.STOPPING, Ticked): ignore,
    (_S.STOPPED, TookOver): ignore,
    (_S.STOPPED, Received): ignore,
    (_S.STOPPED, SessionClosed): ignore,
    (_S.STOPPED, StreamsChanged): ignore,
    (_S.STOPPED, Committed): ignore,
    (_S.STOPPED, Instructed): ignore,
    (_S.STOPPED, Hold): ignore,
    (_S.STOPPED, LendAgain): ignore,
    (_S.STOPPED, Rehomed): ignore,
    (_S.STOPPED, WentBack): ignore,
    (_S.STOPPED, Destroyed): ignore,
    (_S.STOPPED, SessionsEnding): ignore,
    (_S.STOPPED, StopAsked): ignore,
    (_S.STOPPED, Ticked): ignore,
}
