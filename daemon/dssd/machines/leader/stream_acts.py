"""What a leader does to its streams in one step: books, timers, messages, commits.

`turn_stream` lets one stream take an event and carries out the acts that follow from it; commits
gather what changed. It decides nothing about members or about who should hold what: that is
`machine`. Invariant: a stream that is in `Leader.dirty` has changes that no commit holds,
and one that is not is durable as it stands once no commit is under way.
"""

from collections.abc import Iterable
from typing import assert_never

from dss_core.ids import StreamId
from dssd.machines.leader import stream_sets
from dssd.machines.leader.events import Committed, LeaderEffect, Persist, Send
from dssd.machines.leader.state import (
    COMMIT_GATHER_MS_MAX,
    COMMIT_STREAMS_MAX,
    STREAMS_A_REBALANCE_MS,
    Alarm,
    Leader,
    Limit,
    Member,
    Resend,
)
from dssd.machines.leader.stream import (
    HELD,
    LIMITED,
    Act,
    GrantDecided,
    LentStream,
    Released,
    Reported,
    ResendDue,
    Saved,
    StreamEvent,
    StreamState,
)
from dssd.machines.leader.stream import step as step_stream
from dssd.machines.leader.stream_set_state import StreamSets
from dssd.machines.messages import (
    BorrowerId,
    Grant,
    Invalidate,
    ProgressSaved,
    Revoke,
    Revoked,
    ToBorrower,
)


class LeaderTurn:
    """One step under way: the time, and the effects so far."""

    __slots__ = ("effects", "grants", "now_ms", "state")

    def __init__(self, state: Leader, now_ms: int) -> None:
        self.state = state
        self.now_ms = now_ms
        self.effects: list[LeaderEffect] = []
        self.grants: dict[BorrowerId, list[LentStream]] = {}
        """Grants that leave at the end of the step, one message a borrower."""

    def send(self, message: ToBorrower) -> None:
        """Let the message leave."""
        self.effects.append(Send(message))


# Streams


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
    for act in acts:
        if act is not Act.PLACE or place:
            _act(turn, lent, event, act)


def _note_heir(state: Leader, lent: LentStream, before: BorrowerId | None) -> None:
    heir_before = state.members.get(before) if before is not None else None
    if heir_before is not None:
        heir_before.inherits.discard(lent.stream)
    if lent.heir is not None:
        state.members[lent.heir].inherits.add(lent.stream)


def _note_state(turn: LeaderTurn, lent: LentStream, before: StreamState) -> None:
    state = turn.state
    lent.since_ms = turn.now_ms
    if state.resend_ms.pop(lent.stream, None) is not None:
        state.timers.clear(Resend(lent.stream))
    if lent.state in LIMITED:
        state.timers.set(Limit(lent.stream), turn.now_ms + state.timing.revoke_deadline_ms)
    elif before in LIMITED:
        state.timers.clear(Limit(lent.stream))


def _act(turn: LeaderTurn, lent: LentStream, event: StreamEvent, act: Act) -> None:
    match act:
        case Act.SAVE_SOON:
            mark_dirty(turn, lent.stream)
        case Act.SAVE_NOW:
            mark_dirty(turn, lent.stream)
            turn.state.urgent = True
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
            _place(turn, lent)
        case Act.SHARE_ANEW:
            rebalance_by(turn, turn.now_ms + turn.state.timing.gather_ms)
        case _:
            assert_never(act)


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
            ends_ms = state.timers.at_ms(Limit(lent.stream))
            left_ms = state.timing.revoke_deadline_ms
            if ends_ms is not None:
                left_ms = max(ends_ms - turn.now_ms, 0)
            turn.send(Revoke(holder, epoch, lent.stream, lent.grant_epoch, left_ms))
        case Act.SEND_REVOKED:
            turn.send(Revoked(holder, epoch, lent.stream, lent.grant_epoch, lent.saved))
        case _:
            turn.send(ProgressSaved(holder, epoch, lent.stream, lent.grant_epoch, lent.saved))


def send_grants(turn: LeaderTurn) -> None:
    """Let the grants of this step leave, one message a borrower."""
    state = turn.state
    for borrower_id, all_lent in turn.grants.items():
        streams = tuple(
            lent.granted()
            for lent in all_lent
            if lent.state is StreamState.GRANTING and lent.holder == borrower_id
        )
        if streams:
            turn.send(Grant(borrower_id, state.leader_epoch, streams, state.timing.lease_ms))


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


def _place(turn: LeaderTurn, lent: LentStream) -> None:
    heir = turn.state.members.get(lent.heir) if lent.heir is not None else None
    if heir is not None:
        lend(turn, lent, heir)
    else:
        rebalance_by(turn, turn.now_ms)


def lend(turn: LeaderTurn, lent: LentStream, member: Member) -> None:
    """Lend a free stream to a member."""
    turn_stream(turn, lent, GrantDecided(member.borrower_id, member.session_id))
    if turn.state.stream_sets is not None:
        stream_sets.touch(turn.state.stream_sets, lent, again=False)


def rebalance_by(turn: LeaderTurn, at_ms: int) -> None:
    """Allocate at that time, or before where that is planned already; later in a large group."""
    state = turn.state
    if state.rebalanced_ms is not None:
        rest_ms = len(state.streams) // STREAMS_A_REBALANCE_MS
        at_ms = max(at_ms, state.rebalanced_ms + rest_ms)
    known_ms = state.timers.at_ms(Alarm.REBALANCE)
    if known_ms is None or at_ms < known_ms:
        state.timers.set(Alarm.REBALANCE, at_ms)


# Commits


def mark_dirty(turn: LeaderTurn, stream: StreamId) -> None:
    """The next commit holds the stream."""
    state = turn.state
    if not state.dirty:
        slow_ms = min(2 * state.commit_took_ms, COMMIT_GATHER_MS_MAX)
        gather_ms = max(state.timing.commit_ms, slow_ms)
        state.timers.set(Alarm.COMMIT, turn.now_ms + gather_ms)
    state.dirty[stream] = None


def commit_if_due(turn: LeaderTurn) -> None:
    """Begin a commit, where one is due and none is under way."""
    state = turn.state
    due_ms = state.timers.at_ms(Alarm.COMMIT)
    due = state.urgent or due_ms is None or due_ms <= turn.now_ms
    if not (state.dirty or stream_sets.is_waiting(state)) or state.is_committing() or not due:
        return
    chosen = [state.streams[stream] for stream in _first(state.dirty, COMMIT_STREAMS_MAX)]
    versions = stream_sets.new_versions(state, {lent.stream for lent in chosen})
    if not chosen and not versions:
        return
    for lent in chosen:
        del state.dirty[lent.stream]
    state.timers.clear(Alarm.COMMIT)
    state.urgent = state.urgent and bool(state.dirty)
    state.commit_id += 1
    state.commit_begun_ms = turn.now_ms
    state.in_flight = tuple((lent.stream, lent.grant_epoch, lent.progress) for lent in chosen)
    measure = tuple(
        lent.stream for lent in chosen if lent.unmeasured and lent.state is StreamState.GRANTING
    )
    records = tuple(lent.record() for lent in chosen)
    for lent in chosen:
        lent.grant_unsaved = False
    turn.effects.append(Persist(state.commit_id, records, measure, versions))


def _first(streams: Iterable[StreamId], count: int) -> list[StreamId]:
    return [stream for stream, _ in zip(streams, range(count), strict=False)]


def note_committed(turn: LeaderTurn, given: Committed) -> None:
    """Tell the streams of a commit that it is durable."""
    state = turn.state
    if given.commit_id != state.commit_id or not state.is_committing():
        return
    state.commit_took_ms = turn.now_ms - state.commit_begun_ms
    if state.stream_sets is not None:
        stream_sets.note_durable(state.stream_sets)
    ends = dict(given.ends)
    saved, state.in_flight = state.in_flight, ()
    for stream, grant_epoch, progress in saved:
        lent = state.streams.get(stream)
        if lent is not None:
            current = stream not in state.dirty
            event = Saved(grant_epoch, progress, current, ends.get(stream))
            turn_stream(turn, lent, event)
