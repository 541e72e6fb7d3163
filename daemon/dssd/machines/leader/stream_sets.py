"""The leader's side of the lease protocol: changes of streams become versions of stream sets.

Streams are lent and revoked as in every group (`stream`); this module turns that into the stream
sets that members are told: docs/protocol.md, "The lease protocol". Rules:

1. A set holds the streams that are being granted, or are granted, to the member. If that differs
   from the newest version, the next commit holds a new version, and the grant epochs of the streams
   in it; both are durable before the set is sent.
2. The next version is made once the member has shown the one before. Until then, and for as long
   as a grant or a revoke in it is unanswered, the set is sent again.
3. Versions are counted by session, durably, and never fall while a borrower of it lives: a set of
   an earlier leader can be told from one of this leader's. The counter of a session without a
   member is deleted; its next borrower has a new id, which no old set can reach.
4. Each message to a member renews its lease, from its newest send time that the leader has heard.

It knows neither time nor timers of streams; `stream_acts` and `machine` call it.
"""

from collections.abc import Collection, Iterator

from dss_core.ids import StreamId
from dssd.machines.leader.events import SetVersion
from dssd.machines.leader.lent_stream import LentStream, StreamState
from dssd.machines.leader.state import Alarm, Leader, LeaderState, StateDeadline
from dssd.machines.leader.stream_set_state import StreamSet, StreamSets
from dssd.machines.messages import (
    BorrowerId,
    GrantedStream,
    LeaderWanted,
    LeaseStreams,
    RenewStreamLease,
    Taken,
    TakenState,
    ToBorrower,
    UpdateStreams,
    UpdateStreamStates,
)

LENT = frozenset({StreamState.GRANTING, StreamState.GRANTED})
TAKEN = frozenset({StreamState.REVOKING, StreamState.REVOKED})


# Members


def presents(sets: StreamSets, message: LeaderWanted) -> bool:
    """Whether a borrower has no set, or one that this leader did not make."""
    known = sets.by_member.get(message.borrower_id)
    return known is None or known.shown < message.version != known.version


def enter(sets: StreamSets, message: LeaderWanted) -> None:
    """A borrower becomes a member, with the set that it has from a leader before."""
    session_id, version = message.session_id, message.version
    sets.by_member[message.borrower_id] = StreamSet(session_id, version, message.sent_ms)
    sets.ended.pop(session_id, None)
    if version:
        sets.counters[session_id] = max(version, sets.counters.get(session_id, 0))
        sets.newcomers.pop(message.borrower_id, None)
    else:
        sets.newcomers[message.borrower_id] = None


def adopt(state: Leader, sets: StreamSets, borrower_id: BorrowerId) -> None:
    """Note as the member's set the streams that it presented and keeps."""
    member_set = sets.by_member[borrower_id]
    for stream, lent in _held(state, borrower_id):
        if lent.state is StreamState.GRANTED:
            member_set.told[stream] = lent.grant_epoch
        elif lent.state is StreamState.GRANTING:
            _change(sets, borrower_id, member_set)


def leave(sets: StreamSets, borrower_id: BorrowerId) -> None:
    """A member is gone."""
    session_id = sets.by_member.pop(borrower_id).session_id
    for pending in (sets.newcomers, sets.changed, sets.speaking):
        pending.pop(borrower_id, None)
    if session_id in sets.counters and all(
        member_set.session_id != session_id for member_set in sets.by_member.values()
    ):
        sets.ended[session_id] = None


def forget_sessions(sets: StreamSets) -> None:
    """No member is left, and none comes back: delete the counters of all sessions."""
    sets.ended.update(dict.fromkeys(sets.counters))


def hear(sets: StreamSets, message: LeaderWanted | UpdateStreamStates) -> bool:
    """Note which version a member has; False where it cannot have that."""
    member_set = sets.by_member[message.borrower_id]
    if member_set.shown < message.version != member_set.version:
        return False
    member_set.heard_ms = max(member_set.heard_ms, message.sent_ms)
    asks = isinstance(message, LeaderWanted) or message.asks_renewal
    if message.version > member_set.shown:
        member_set.shown = message.version
        if member_set.changed:
            sets.changed[message.borrower_id] = None
    elif message.version == member_set.shown and isinstance(message, UpdateStreamStates) and asks:
        # It names all streams that are taken over: any other was dropped.
        named = {taken.report.stream for taken in message.taken_over}
        for stream in member_set.accepted.keys() - named:
            del member_set.accepted[stream]
    if asks:
        member_set.renew = True
        sets.speaking[message.borrower_id] = None
    return True


def note_taken(state: Leader, sets: StreamSets, borrower_id: BorrowerId, taken: TakenState) -> bool:
    """Note that a stream is fully acked; False where that was accepted before."""
    member_set = sets.by_member[borrower_id]
    stream, grant_epoch = taken.report.stream, taken.report.grant_epoch
    if member_set.accepted.get(stream) == grant_epoch:
        member_set.renew = True
        sets.speaking[borrower_id] = None
        return False
    lent = state.streams.get(stream)
    if taken.final and lent is not None and lent.holder == borrower_id:
        member_set.returned[stream] = grant_epoch
    return True


# Streams


def touch(sets: StreamSets, lent: LentStream, *, again: bool) -> bool:
    """A stream changed for its holder; returns whether that takes a new version."""
    assert lent.holder is not None
    member_set = sets.by_member[lent.holder]
    taken = lent.state in TAKEN
    unsaid = taken and not tells(sets, lent)
    if unsaid and not member_set.since:
        # A first set does not name streams to take over; the member may hold them or not.
        member_set.forced = True
    changed = member_set.forced or tells(sets, lent) == taken
    if changed:
        _change(sets, lent.holder, member_set)
    if again or unsaid:
        member_set.again = True
        sets.speaking[lent.holder] = None
    return changed


def note_adopted(sets: StreamSets, lent: LentStream, borrower_id: BorrowerId) -> None:
    """A stream was reported: it may have become its holder's again without being in the set."""
    if lent.holder == borrower_id and lent.state in LENT and not tells(sets, lent):
        _change(sets, borrower_id, sets.by_member[borrower_id])


def tells(sets: StreamSets, lent: LentStream) -> bool:
    """Whether the newest set of the holder has the stream under its present grant."""
    assert lent.holder is not None
    return sets.by_member[lent.holder].told.get(lent.stream) == lent.grant_epoch


def accept(sets: StreamSets, lent: LentStream) -> bool:
    """A revoked stream's progress is durable; returns whether its holder said it is final."""
    assert lent.holder is not None
    member_set = sets.by_member[lent.holder]
    if member_set.returned.get(lent.stream) != lent.grant_epoch:
        return False
    del member_set.returned[lent.stream]
    member_set.accepted[lent.stream] = lent.grant_epoch
    member_set.renew = True
    sets.speaking[lent.holder] = None
    return True


def offer_first(state: Leader, sets: StreamSets) -> None:
    """Once shares are computed, each newcomer gets a set, which may be empty."""
    if state.moves or state.timers.at_ms(Alarm.REBALANCE) is not None:
        return
    for borrower_id in sets.newcomers:
        _change(sets, borrower_id, sets.by_member[borrower_id])
    sets.newcomers.clear()


def _change(sets: StreamSets, borrower_id: BorrowerId, member_set: StreamSet) -> None:
    member_set.changed = True
    if member_set.shown == member_set.version:
        sets.changed[borrower_id] = None


# Commits


def is_waiting(state: Leader) -> bool:
    """Whether versions wait for a commit."""
    sets = state.stream_sets
    if sets is None or state.state is not LeaderState.LEADING:
        return False
    return bool(sets.changed or sets.ended)


def new_versions(state: Leader, chosen: Collection[StreamId]) -> tuple[SetVersion, ...]:
    """Make the next sets; the commit that holds these versions holds the chosen streams too."""
    sets = state.stream_sets
    if sets is None or not is_waiting(state):
        return ()
    made = [borrower_id for borrower_id in sets.changed if _make(state, borrower_id, chosen)]
    sets.changed.clear()
    sets.in_flight = tuple(made)
    sessions = {sets.by_member[borrower_id].session_id: None for borrower_id in made}
    versions = [SetVersion(session_id, sets.counters[session_id]) for session_id in sessions]
    versions += [SetVersion(session_id, None) for session_id in sets.ended]
    for session_id in sets.ended:
        sets.counters.pop(session_id, None)
    sets.ended.clear()
    return tuple(versions)


def _make(state: Leader, borrower_id: BorrowerId, chosen: Collection[StreamId]) -> bool:
    sets = state.stream_sets
    assert sets is not None
    member_set = sets.by_member[borrower_id]
    told = {
        stream: lent.grant_epoch
        for stream, lent in _held(state, borrower_id)
        if lent.state is StreamState.GRANTED
        or (lent.state is StreamState.GRANTING and (lent.durable or stream in chosen))
    }
    member_set.changed = False
    if member_set.version and told == member_set.told and not member_set.forced:
        return False
    member_set.forced = False
    version = sets.counters.get(member_set.session_id, 0) + 1
    sets.counters[member_set.session_id] = version
    member_set.since, member_set.version = member_set.shown, version
    member_set.told = told
    member_set.durable = False
    return True


def note_durable(sets: StreamSets) -> None:
    """The versions of the commit are durable: their sets may leave."""
    made, sets.in_flight = sets.in_flight, ()
    for borrower_id in made:
        member_set = sets.by_member.get(borrower_id)
        if member_set is not None:
            member_set.durable = True
            member_set.again = True
            sets.speaking[borrower_id] = None


# Messages


def messages(state: Leader, sets: StreamSets, now_ms: int) -> Iterator[ToBorrower]:
    """What is sent at the end of a step: at most one message to each member."""
    speaking, sets.speaking = sets.speaking, {}
    for borrower_id in speaking:
        member_set = sets.by_member[borrower_id]
        again, renew = member_set.again, member_set.renew
        member_set.again = member_set.renew = False
        shown = member_set.shown == member_set.version
        if member_set.durable and member_set.version and (again or not shown):
            yield _set_message(state, borrower_id, member_set, now_ms)
        elif renew and member_set.shown:
            yield _renewal(state, borrower_id, member_set)


def _set_message(
    state: Leader, borrower_id: BorrowerId, member_set: StreamSet, now_ms: int
) -> ToBorrower:
    streams = tuple(_granted(state, borrower_id, member_set))
    version, heard_ms = member_set.version, member_set.heard_ms
    if not member_set.since:
        lease_ms = state.timing.lease_ms
        return LeaseStreams(borrower_id, state.leader_epoch, version, streams, lease_ms, heard_ms)
    taken = tuple(
        Taken(stream, lent.grant_epoch, _left_ms(state, stream, now_ms))
        for stream, lent in _held(state, borrower_id)
        if lent.state in TAKEN
    )
    return UpdateStreams(
        borrower_id, state.leader_epoch, member_set.since, version, streams, taken, heard_ms
    )


def _granted(
    state: Leader, borrower_id: BorrowerId, member_set: StreamSet
) -> Iterator[GrantedStream]:
    for stream, lent in _held(state, borrower_id):
        if lent.state in LENT and member_set.told.get(stream) == lent.grant_epoch:
            if lent.state is StreamState.GRANTED or lent.durable:
                yield lent.granted(state.pause)
            else:
                # It changed while its commit was under way: a later set has it.
                del member_set.told[stream]


def _left_ms(state: Leader, stream: StreamId, now_ms: int) -> int:
    ends_ms = state.timers.at_ms(StateDeadline(stream))
    return state.timing.revoke_deadline_ms if ends_ms is None else max(ends_ms - now_ms, 0)


def _renewal(state: Leader, borrower_id: BorrowerId, member_set: StreamSet) -> ToBorrower:
    held = state.members[borrower_id].streams
    updating = any(state.streams[stream].state in TAKEN for stream in held)
    return RenewStreamLease(
        borrower_id,
        state.leader_epoch,
        member_set.shown,
        member_set.heard_ms,
        member_set.since if updating else None,
        tuple(member_set.accepted.items()),
    )


def _held(state: Leader, borrower_id: BorrowerId) -> list[tuple[StreamId, LentStream]]:
    held = sorted(state.members[borrower_id].streams)
    return [(stream, state.streams[stream]) for stream in held]
