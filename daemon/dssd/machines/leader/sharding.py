"""The shards of a group: who may be lent a stream of a shard, and under which shard epoch.

Members that keep state *by shard* are told which shards they have, and with which epoch. Rules:

1. A stream is not lent to such a member while anybody else holds a stream of its shard, nor to
   anybody else while such a member holds one. So while such a member has any stream of a shard,
   nobody else is given records of the shard. All other members hand over stream by stream.
2. Whenever a member is lent its first stream of a shard, the shard gets a new epoch. Its upper bits
   are the leader's epoch, which is durable and rises with each leader; its lower bits are a counter
   of this leader. So a later owner of a key has a higher epoch, even after the number of shards
   changed.
3. Another number of shards makes other shards. A member that keeps state by shard gives back the
   streams of its former shards, and gets them again. For other members only streams move that
   change their owners.
4. A new leader does not know the shards of the streams that members hold by shard. It counts them
   under a shard that covers everything, and the members give them back.

Invariant: `Shards.former` counts the streams that are held under former shards. This module does
not know when streams are shared out (`rebalance`).
"""

from collections import Counter
from collections.abc import Sequence

from dss_core.ids import StreamId
from dss_core.shards import Shard
from dssd.machines.leader.events import Concluded
from dssd.machines.leader.lent_stream import HELD, TRANSIENT, LentStream, StreamState
from dssd.machines.leader.slicing import Slicing
from dssd.machines.leader.state import Alarm, KeptFor, Leader, Member
from dssd.machines.leader.turn import LeaderTurn

EPOCH_BITS = 32
"""The bits of the counter in a shard's epoch: no leader lends four thousand million times."""

UNKNOWN = Shard(0, 0)
"""The former shard of a stream that an earlier leader lent: it covers everything."""

UNTOLD = Shard(-1, 1)
"""The former shard of a stream that was lent before there were shards: it covers nothing."""


def slice_anew(state: Leader, slicing: Slicing | None) -> None:
    """Cut the streams into these shards from now on."""
    if slicing is not None and state.shards.slicing is not None:
        # A removed topic stays known until its streams are gone.
        slicing = Slicing(slicing.of, {**state.shards.slicing.partitions, **slicing.partitions})
    state.shards.slicing = slicing
    state.shards.former, state.shards.lanes = Counter(), {}
    if slicing is None:
        return
    state.shards.lanes = slicing.lanes_of(state.streams)
    for number, streams in state.shards.lanes.items():
        held = [lent for each in streams if (lent := state.streams[each]).state in HELD]
        if held:
            _cut_anew(state, Shard(number, slicing.of), held)


def _cut_anew(state: Leader, shard: Shard, held: Sequence[LentStream]) -> None:
    """Held streams become part of this shard; a member by shard keeps the former one until it
    gives the stream back."""
    for lent in held:
        holder = state.members.get(lent.holder or b"")
        if holder is None or not holder.by_shard:
            lent.shard = shard
            continue
        lent.shard = lent.shard or UNTOLD
        if lent.shard != shard:
            state.shards.former[lent.shard] += 1


def is_outdated(state: Leader, lent: LentStream) -> bool:
    """Whether its holder has it as a part of a former shard."""
    if state.shards.slicing is None or lent.state not in (
        StreamState.GRANTING,
        StreamState.GRANTED,
    ):
        return False
    return lent.shard is not None and lent.shard != state.shards.slicing.shard_of(lent.stream)


def may_have(state: Leader, lent: LentStream, member: Member) -> bool:
    """Whether the member may be lent a stream now; if not, the leader tries again later."""
    slicing = state.shards.slicing
    if slicing is None or not _is_kept_by_shard(state):
        return True
    mates = state.shards.lanes[slicing.shard_of(lent.stream).number]
    apart = _is_in_former(state, slicing, lent.stream) or any(
        _keeps_away(state, state.streams[mate], member) for mate in mates
    )
    state.shards.apart = state.shards.apart or apart
    return not apart


def _is_in_former(state: Leader, slicing: Slicing, stream: StreamId) -> bool:
    """Whether a member still has a former shard that includes the stream."""
    former = state.shards.former
    return bool(former[UNKNOWN]) or any(
        former[slicing.shard_of(stream, of)] for of in {shard.of for shard in former} if of
    )


def _is_kept_by_shard(state: Leader) -> bool:
    """Whether any member keeps state by shard, or may do so once it is back."""
    kept = state.reserve is not KeptFor.NOTHING
    return kept or any(member.by_shard for member in state.members.values())


def _keeps_away(state: Leader, mate: LentStream, member: Member) -> bool:
    if mate.reserved:
        return mate.session_id != member.session_id
    if mate.state not in HELD or mate.holder == member.borrower_id:
        return False
    holder = state.members.get(mate.holder or b"")
    return member.by_shard or (holder is not None and holder.by_shard)


def note_held(state: Leader, lent: LentStream) -> None:
    """The stream has a holder: note its shard and the shard's epoch."""
    if state.shards.slicing is None or lent.holder is None:
        return
    shard = lent.shard = state.shards.slicing.shard_of(lent.stream)
    if not state.members[lent.holder].by_shard:
        return
    if lent.state is StreamState.GRANTING:
        lent.shard_epoch = _epoch(state, lent, shard)
    else:
        lent.shard = UNKNOWN
        state.shards.former[UNKNOWN] += 1


def _epoch(state: Leader, lent: LentStream, shard: Shard) -> int:
    """The epoch of the other streams of the shard that the member has, else a new one."""
    for mate in map(state.streams.__getitem__, state.shards.lanes[shard.number]):
        same = mate.state in HELD and mate.holder == lent.holder and mate.shard == shard
        if same and mate is not lent:
            return mate.shard_epoch
    state.shards.given += 1
    return (state.leader_epoch << EPOCH_BITS) + state.shards.given


def forget(state: Leader, lent: LentStream) -> None:
    """The stream is gone, with its topic."""
    if lent.shard is not None:
        note_let_go(state, lent)
    if state.shards.slicing is not None:
        number = state.shards.slicing.shard_of(lent.stream).number
        state.shards.lanes[number].remove(lent.stream)


def note_let_go(state: Leader, lent: LentStream) -> bool:
    """Nobody holds the stream any more; returns whether a member waits for that."""
    shard, lent.shard = lent.shard, None
    if shard is not None and shard in state.shards.former:
        state.shards.former[shard] -= 1
        state.shards.former += Counter()
    waits, state.shards.apart = state.shards.apart, False
    return waits


def conclude_if_shared(turn: LeaderTurn) -> None:
    """Conclude waiting operations if every shard is with its owner."""
    state = turn.state
    if state.shards.waiting and not _is_sharing(state):
        turn.effects.extend(Concluded(number) for number in sorted(state.shards.waiting))
        state.shards.waiting.clear()


def _is_sharing(state: Leader) -> bool:
    if state.reserve is not KeptFor.NOTHING:
        return True
    if state.moves or state.timers.at_ms(Alarm.REBALANCE) is not None:
        return bool(state.members)
    return any(lent.state in TRANSIENT for lent in state.streams.values())
