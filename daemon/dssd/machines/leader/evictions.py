"""How operations end a member for good, and keep a client out.

An eviction is an orderly end. The leader revokes all streams of the member, within the grace that
the operation gives, but leaves enough time for the client to say how far it handed out. The member
gets nothing more. Once it has let go of everything, or its lease has ended, it is removed with a
final code, so its agent does not come back. A *ban* keeps a client out until a time: its borrowers
that look for the leader get a final code.
Invariant: a member that is being evicted is leaving. This module does not know who gets the streams
(`rebalance`).
"""

from dss_core.errors import BorrowerEvicted, ClientBanned
from dssd.machines.leader.events import Concluded
from dssd.machines.leader.hand_over_events import Ban, Evict, LiftBan
from dssd.machines.leader.hand_overs import is_postponed
from dssd.machines.leader.hand_overs_under_way import conclude_if_evicted
from dssd.machines.leader.members import note_leaving, remove_member
from dssd.machines.leader.operated_state import Eviction
from dssd.machines.leader.state import BanEnds, Leader, Member
from dssd.machines.leader.stream_acts import rebalance_by, turn_stream
from dssd.machines.leader.stream_events import RevokeDecided
from dssd.machines.leader.turn import LeaderTurn
from dssd.machines.messages import BorrowerId, Invalidate


def evict(turn: LeaderTurn, asked: Evict) -> None:
    """Begin to end the member, and with a ban all members of its client."""
    if asked.ban is not None:
        keep_out(turn, asked.ban)
    if is_postponed(turn, asked):
        return
    eviction = Eviction(asked.number, asked.reason, asked.grace_ms)
    by_member = turn.state.evictions.by_member
    for member in _meant(turn.state, asked):
        before = by_member.get(member.borrower_id)
        by_member[member.borrower_id] = eviction
        if before is None:
            _begin(turn, member)
        elif before.number != asked.number:
            conclude_if_evicted(turn, before.number)
    conclude_if_evicted(turn, asked.number)


def _meant(state: Leader, asked: Evict) -> list[Member]:
    """The members to evict. A member that is gone may have come back as another of its session."""
    if asked.ban is not None:
        return [each for each in state.members.values() if each.client_id == asked.ban.client_id]
    if asked.borrower_id in state.members:
        return [state.members[asked.borrower_id]]
    of_session = (state.members[each] for each in state.sessions.get(asked.session_id, ()))
    return [each for each in of_session if asked.subscription in (None, each.subscription)]


def _begin(turn: LeaderTurn, member: Member) -> None:
    state = turn.state
    note_leaving(turn, member)
    for stream in sorted(member.streams):
        turn_stream(turn, state.streams[stream], RevokeDecided(None))
    # The rebalance names an heir for each of its streams before they are free.
    rebalance_by(turn, turn.now_ms)


def end_evicted(turn: LeaderTurn) -> None:
    """Remove evicted members that have let go of everything."""
    state = turn.state
    for borrower_id, eviction in list(state.evictions.by_member.items()):
        member = state.members[borrower_id]
        if not member.streams:
            ends_ms = turn.now_ms + state.timing.gather_ms
            remove_member(turn, member, rebalance_at_ms=ends_ms)
            turn.send(eviction_notice(state, borrower_id, eviction.reason))


def eviction_notice(state: Leader, borrower_id: BorrowerId, reason: str) -> Invalidate:
    """The answer to each message of an evicted borrower."""
    code = BorrowerEvicted.code
    return Invalidate(borrower_id, state.leader_epoch, code, detail=reason)


# Bans


def keep_out(turn: LeaderTurn, ban: Ban) -> None:
    """The client may not be a member until the end of the ban."""
    if ban.ends_ms > turn.now_ms:
        turn.state.evictions.bans[ban.client_id] = ban
        turn.state.timers.set(BanEnds(ban.client_id), ban.ends_ms)


def lift_ban(turn: LeaderTurn, asked: LiftBan) -> None:
    """An operator lets the client in again."""
    end_ban(turn, asked.client_id)
    turn.effects.append(Concluded(asked.number))


def end_ban(turn: LeaderTurn, client_id: str) -> None:
    """The client may be a member."""
    turn.state.evictions.bans.pop(client_id, None)
    turn.state.timers.clear(BanEnds(client_id))


def _is_to_be_evicted(state: Leader, client_id: str) -> bool:
    """Whether a ban waits for the client's members to come back: they are evicted in order."""
    waiting = state.hand_overs.postponed.values()
    bans = [each.ban for each in waiting if isinstance(each, Evict) and each.ban is not None]
    return any(ban.client_id == client_id for ban in bans)


def ban_notice(state: Leader, borrower_id: BorrowerId, client_id: str) -> Invalidate | None:
    """The refusal for a borrower of a banned client that is not a member; else None."""
    ban = state.evictions.bans.get(client_id)
    if ban is None or borrower_id in state.members or _is_to_be_evicted(state, client_id):
        return None
    epoch, code = state.leader_epoch, ClientBanned.code
    return Invalidate(borrower_id, epoch, code, detail=str(ban.until_ms))
