"""What a leader knows of shards, and who may have a stream of one.

Members that keep state *by shard* are told which shards they have, and with which epoch. Rules:

1. A stream is not lent to such a member while anybody else holds one of its shard, nor to anybody
   while such a member holds one. So from the first of its streams that it is lent to the last that
   it lets go of, nobody else is given records of the shard. All other members hand over stream by
   stream.
2. Each time somebody is lent the first stream of a shard, that has a new epoch: the leader's epoch,
   which is durable and rises with each leader, and below it a number that this leader counts. So
   whoever has a key later has a higher one, also over another count of shards.
3. Another count makes other shards. A member that keeps state by shard gives back what it holds of
   the former ones, and gets it again; for all others only what changes its owner moves, and the
   rest is not touched.
4. Who a new leader finds holding streams by shard has them under a shard that covers everything,
   for nobody knows which: it gives them back.

Invariant: `Shards.former` counts the streams that are held under shards that are none any more.
This module does not know when streams are shared out (`rebalance`).
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
"""Of a shard's epoch, below those of the leader's: no leader lends four thousand million times."""

UNKNOWN = Shard(0, 0)
"""Of a stream that was lent by a leader before: it covers everything, and is none any more."""

UNTOLD = Shard(-1, 1)
"""Of a stream that was lent before there were shards: it covers nothing, and is none any more."""


def slice_anew(state: Leader, slicing: Slicing | None) -> None:
    """Streams are cut into these shards from now on."""
    if slicing is not None and state.shards.slicing is not None:
        # A topic that goes is still known until its streams are gone.
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
    """What somebody holds is a part of this shard, or of a former one until it is given back."""
    for lent in held:
        holder = state.members.get(lent.holder or b"")
        if holder is None or not holder.by_shard:
            lent.shard = shard
            continue
        lent.shard = lent.shard or UNTOLD
        if lent.shard != shard:
            state.shards.former[lent.shard] += 1


def is_outdated(state: Leader, lent: LentStream) -> bool:
    """Whether its holder has it as a part of a shard that is none any more."""
    if state.shards.slicing is None or lent.state not in (
        StreamState.GRANTING,
        StreamState.GRANTED,
    ):
        return False
    return lent.shard is not None and lent.shard != state.shards.slicing.shard_of(lent.stream)


def may_have(state: Leader, lent: LentStream, member: Member) -> bool:
    """Whether the member may be lent a stream now; if not, it is asked again."""
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
    """Whether somebody still has a shard that is none any more, and has the stream in it."""
    former = state.shards.former
    return bool(former[UNKNOWN]) or any(
        former[slicing.shard_of(stream, of)] for of in {shard.of for shard in former} if of
    )


def _is_kept_by_shard(state: Leader) -> bool:
    """Whether anybody keeps state by shard, or may, who is not back yet."""
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
    """The stream has a holder: of which shard, and with which epoch."""
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
    """That of the shard's streams that the same member has, else a new one."""
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
    """Nobody holds it any more; whether somebody waits for that."""
    shard, lent.shard = lent.shard, None
    if shard is not None and shard in state.shards.former:
        state.shards.former[shard] -= 1
        state.shards.former += Counter()
    waits, state.shards.apart = state.shards.apart, False
    return waits


def conclude_if_shared(turn: LeaderTurn) -> None:
    """Say that every shard is where it is to be, to operations that wait for it."""
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
