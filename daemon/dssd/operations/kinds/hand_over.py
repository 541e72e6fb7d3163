"""Rebalance, transfer and revoke: streams that change hands while their members stay connected.

A plan names each move. The leader makes them as it makes those of its own rebalances: the holder is
asked for the stream, reports for the last time, and then the taker gets it (`hand_overs` of the
leader's machine). A transfer and a revoke pin the stream to the taker; taking a transfer back takes
the pin away. Invariant: a stream that the plan does not name is not touched.
"""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from dss_core.changes import (
    Change,
    Rebalance,
    RevokeGrant,
    StreamMove,
    TransferGrant,
    Undo,
)
from dss_core.counted import counted
from dss_core.errors import BorrowerNotFound, IllegalArgument, NobodyToLendTo, NotUndoable
from dss_core.ids import StreamId
from dssd.leaders.groups import Groups
from dssd.leaders.lag import StreamSurvey
from dssd.leaders.registry import Registry
from dssd.limits import REVOKE_DEADLINE_MS
from dssd.machines.leader import hand_over_events as leader
from dssd.machines.leader.events import Instruction, MemberView
from dssd.machines.leader.lent_stream import NOT_LENT, StreamState
from dssd.operations.history import CANCELLED
from dssd.operations.kinds.clients_named import named
from dssd.operations.kinds.members import Membership, id_of, membership
from dssd.operations.limits import MOVES_A_PLAN_MAX
from dssd.operations.plans import Begun, Made, Plan, subject_of
from dssd.store.paging import scan_all
from dssd.store.port import Store
from dssd.store.rows import GrantRow, OperationRow

REBALANCE = "groups.rebalance"
TRANSFER = "grants.transfer"
REVOKE = "grants.revoke"

_PLACE = ("storage_topic_id", "partition")
HANDS = "streams have changed hands"

_KINDS = {Rebalance: REBALANCE, TransferGrant: TRANSFER, RevokeGrant: REVOKE}

HandOver = Rebalance | TransferGrant | RevokeGrant


class HandOvers:
    """Plans and begins operations that let streams change hands."""

    def __init__(self, store: Store, groups: Groups, registry: Registry) -> None:
        self._store = store
        self._groups = groups
        self._registry = registry

    async def plan(self, change: HandOver) -> Plan:
        """What the change would do.

        Raises:
            GroupNotFound, GroupAmbiguous, NotForPrivateGroups, StreamNotRead, BorrowerNotFound,
            NobodyToLendTo, IllegalArgument: it cannot be done.
        """
        kind = _KINDS[type(change)]
        live = await membership(self._groups, self._registry, change.group, kind)
        match change:
            case Rebalance():
                return self._plan_rebalance(change, live)
            case TransferGrant():
                return _plan_transfer(change, live)
            case RevokeGrant():
                return _plan_revoke(change, live)

    async def begin(self, plan: Plan, number: int) -> Begun:
        """The instruction to the leader; its lasting effects are durable with the grants."""
        assert plan.group is not None
        live = Membership(plan.group, await self._registry.survey(plan.group))
        change = plan.change
        if isinstance(change, Rebalance):
            moves = tuple(_hand_over(move, live) for move in change.moves)
            takers = {"takers": _takers(moves, live)}
            return Begun(
                group=plan.group, instruction=leader.Rebalance(number, moves), after=takers
            )
        assert isinstance(change, TransferGrant | RevokeGrant)
        stream = live.stream(change.stream)
        after = _place(stream)
        if isinstance(change, TransferGrant):
            taker = live.member(change.to)
            after |= {"session_id": taker.session_id.hex(), "borrower_id": id_of(taker)}
        else:
            [move] = plan.moves
            giver = live.by_id(bytes.fromhex(move.from_borrower_id))
            if giver is None:
                # The member left since the plan was made: the stream goes to another one anyway.
                raise BorrowerNotFound(group=live.subject, borrower=move.from_client_id)
            after |= {"session_id": giver.session_id.hex(), "borrower_id": move.to_borrower_id}
        instruction = _instruction_of(plan.kind, number, after)
        return Begun(group=plan.group, instruction=instruction, after=after)

    async def plan_undo(self, undone: OperationRow) -> Plan:
        """What taking the pin away would do.

        Raises:
            NotUndoable: the stream is not pinned by the operation any more; a later one may have
                pinned it to the same member.
        """
        group = self._groups.get(undone.group_id)
        live = Membership(group, await self._registry.survey(group))
        after = json.loads(undone.after)
        stream = live.stream(after["stream"])
        pinned = stream.view.pinned_session_id
        if pinned is None or pinned.hex() != after["session_id"]:
            why = "the stream is pinned to that member no more"
            raise NotUndoable(number=undone.number, kind=undone.kind, why=why)
        await self._refuse_built_on(undone, after)
        return Plan(
            change=Undo(undone.number),
            kind=undone.kind,
            subject=subject_of(group),
            revision=group.revision,
            summary=f"take back operation {undone.number}: {stream.name} is pinned no more",
            group=group,
            effects=(
                f"{stream.name} stays with its member; the next rebalance may give it to another.",
            ),
            not_undoable_because="a stream is pinned anew with dssctl grants transfer",
        )

    async def _refuse_built_on(self, undone: OperationRow, after: dict[str, Any]) -> None:
        """Refuse if the pin is of a later operation: the member may have been given it anew."""
        for found in await scan_all(self._store, OperationRow, after=(undone.number,)):
            later = found.row
            if later.group_id != undone.group_id or later.state == CANCELLED:
                continue
            since = json.loads(later.after)
            if all(since.get(name) == after[name] for name in _PLACE):
                why = f"operation {later.number}, {later.kind}, was about this stream later"
                raise NotUndoable(number=undone.number, kind=undone.kind, why=why)

    async def begin_undo(self, undone: OperationRow, plan: Plan, number: int) -> Begun:
        """The pin goes with the next commit of the leader."""
        assert plan.group is not None
        after = json.loads(undone.after)
        instruction = _instruction_of(f"{undone.kind}.undo", number, after)
        return Begun(group=plan.group, instruction=instruction, after=after)

    async def resumed(self, row: OperationRow) -> Begun:
        """A rebalance has nothing left to do: no borrower of its plan outlives a daemon."""
        if row.kind == REBALANCE:
            return Begun(instruction=leader.Rebalance(row.number, ()))
        return Begun(instruction=_instruction_of(row.kind, row.number, json.loads(row.after)))

    def cancellation(self, row: OperationRow) -> Instruction | None:
        """Hand-overs that were not begun are dropped; those under way are completed."""
        return None if row.undoes else leader.CancelHandOvers(row.number)

    async def made(self, row: OperationRow) -> Made:
        """How many streams were last granted to their planned takers."""
        after = json.loads(row.after)
        found = await scan_all(self._store, GrantRow, (row.group_id,))
        last = {(at.row.storage_topic_id, at.row.partition): at.row.session_id for at in found}
        if row.kind == REBALANCE:
            wanted = [
                (bytes.fromhex(who), tuple(at))
                for who, all in after.get("takers", ())
                for at in all
            ]
            done = sum(last.get(at) == taker for taker, at in wanted)
            return Made(done, len(wanted), HANDS)
        holder = last.get((after["storage_topic_id"], after["partition"]))
        named = holder == bytes.fromhex(after["session_id"])
        # A revoke names the member that loses the stream.
        return Made(named if row.kind == TRANSFER else not named, 1, HANDS)

    def _plan_rebalance(self, change: Rebalance, live: Membership) -> Plan:
        if change.moves_max is not None and not change.moves_max > 0:
            raise IllegalArgument(
                argument=f"a rebalance of {change.moves_max} moves", rule="it makes one at least"
            )
        if len(change.moves) > MOVES_A_PLAN_MAX:
            raise IllegalArgument(
                argument=f"a rebalance of {len(change.moves):,} moves",
                rule=f"at most {MOVES_A_PLAN_MAX:,} at a time; plan again when they are done",
            )
        moves = change.moves or tuple(self._moves(live, change.moves_max))
        for move in moves:
            live.stream(move.stream)
        more = " They are as many as one operation makes." if len(moves) == MOVES_A_PLAN_MAX else ""
        return _planned(
            replace(change, moves=moves),
            live,
            moves,
            f"rebalance {live.subject}: {_count(moves)} hands",
            nothing_to_do=not moves,
            effects=(
                f"{_count(moves)} hands, each in order.{more}",
                *_shares(live, moves),
                *_costs(moves),
            ),
            not_undoable_because="the former shares are no better balanced; plan anew",
        )

    def _moves(self, live: Membership, moves_max: int | None) -> Iterable[StreamMove]:
        most = min(moves_max or MOVES_A_PLAN_MAX, MOVES_A_PLAN_MAX)
        by_id = {stream.view.stream: stream for stream in live.survey.streams}
        for move in self._registry.planned_hand_overs(live.group.group_id, most):
            stream, taker = by_id.get(move.stream), live.by_id(move.taker)
            if stream is not None and taker is not None:
                yield live.move(stream, live.by_id(move.giver), taker)


def _plan_transfer(change: TransferGrant, live: Membership) -> Plan:
    stream, taker = live.stream(change.stream), live.member(change.to)
    giver = live.owner(stream)
    pinned = stream.view.pinned_session_id == taker.session_id
    stays = giver is not None and giver.session_id == taker.session_id
    state = StreamState(stream.view.state)
    moves = () if stays or state in NOT_LENT else (live.move(stream, giver, taker),)
    what = f"transfer {stream.name} of {live.subject} to {taker.client_id}"
    if state in NOT_LENT:
        what += f": it is {state.value}"
    resolved = TransferGrant(change.group, change.stream, id_of(taker))
    return _planned(
        resolved,
        live,
        moves,
        what,
        nothing_to_do=state in NOT_LENT or (pinned and stays),
        effects=_pin_effects(live, stream, taker, moves),
    )


def _plan_revoke(change: RevokeGrant, live: Membership) -> Plan:
    stream = live.stream(change.stream)
    giver = live.owner(stream)
    if giver is None:
        what = f"revoke {stream.name} of {live.subject}: nobody has it"
        return _planned(change, live, (), what, nothing_to_do=True)
    others = [each for each in live.staying if each.session_id != giver.session_id]
    if not others:
        raise NobodyToLendTo(group=live.subject, stream=change.stream)
    owned = Counter(each.view.owner for each in live.survey.streams)
    taker = min(others, key=lambda each: (owned[each.borrower_id], each.borrower_id))
    moves = (live.move(stream, giver, taker),)
    what = (
        f"revoke {stream.name} of {live.subject} from {giver.client_id}: "
        f"{taker.client_id} has the fewest streams and gets it"
    )
    return _planned(
        change,
        live,
        moves,
        what,
        nothing_to_do=False,
        effects=_pin_effects(live, stream, taker, moves),
        not_undoable_because="its former member gets it back with dssctl grants transfer",
    )


def _planned(
    change: Change,
    live: Membership,
    moves: Sequence[StreamMove],
    summary: str,
    *,
    nothing_to_do: bool,
    effects: Sequence[str] = (),
    not_undoable_because: str = "",
) -> Plan:
    touched = {each for move in moves for each in (move.from_client_id, move.to_client_id)}
    return Plan(
        change=change,
        kind=_KINDS[type(change)],
        subject=live.subject,
        revision=live.group.revision,
        summary=summary,
        group=live.group,
        moves=tuple(moves),
        effects=() if nothing_to_do else tuple(effects),
        members=tuple(sorted(touched - {""})),
        not_undoable_because=not_undoable_because,
        nothing_to_do=nothing_to_do,
    )


def _pin_effects(
    live: Membership, stream: StreamSurvey, taker: MemberView, moves: Sequence[StreamMove]
) -> list[str]:
    pinned = (
        f"{stream.name} stays with {taker.client_id} until that member leaves; rebalances count it "
        "there, and the next one may move other streams."
    )
    return [*_shares(live, moves), pinned, *_costs(moves)]


def _shares(live: Membership, moves: Sequence[StreamMove]) -> Iterable[str]:
    owned = Counter(each.view.owner for each in live.survey.streams)
    after = Counter(owned)
    for move in moves:
        after[bytes.fromhex(move.from_borrower_id)] -= 1
        after[bytes.fromhex(move.to_borrower_id)] += 1
    for member in live.survey.members:
        before, then = owned[member.borrower_id], after[member.borrower_id]
        if before != then:
            yield f"{member.client_id} has {counted(before, 'stream')} now and {then} then."


def _costs(moves: Sequence[StreamMove]) -> Iterable[str]:
    givers = sorted({move.from_client_id for move in moves} - {""})
    if givers:
        yield (
            f"{named(givers)} may settle records in flight for {REVOKE_DEADLINE_MS // 1_000} s; "
            "the rest comes again, marked as redelivered. Nothing that was acknowledged comes "
            "again."
        )
    if moves:
        yield "Records of a key come in order. All other streams go on undisturbed."


def _count(moves: Sequence[StreamMove]) -> str:
    return counted(len(moves), "stream changes", "streams change")


def _hand_over(move: StreamMove, live: Membership) -> leader.HandOver:
    stream = live.stream(move.stream).view.stream
    giver, taker = bytes.fromhex(move.from_borrower_id), bytes.fromhex(move.to_borrower_id)
    return leader.HandOver(stream, giver or None, taker)


def _takers(moves: Iterable[leader.HandOver], live: Membership) -> list[tuple[str, list[StreamId]]]:
    """The streams that each session is to get: by these the moves that were made are counted."""
    takers: dict[str, list[StreamId]] = {}
    for move in moves:
        taker = live.by_id(move.taker)
        if taker is not None:
            takers.setdefault(taker.session_id.hex(), []).append(move.stream)
    return list(takers.items())


def _place(stream: StreamSurvey) -> dict[str, Any]:
    """The values that rebuild an instruction after a restart, except for members."""
    at = stream.view.stream
    return {
        "stream": str(stream.name),
        "storage_topic_id": at.storage_topic_id,
        "partition": at.partition,
    }


def _instruction_of(kind: str, number: int, after: dict[str, Any]) -> Instruction:
    stream = StreamId(after["storage_topic_id"], after["partition"])
    session_id = bytes.fromhex(after["session_id"])
    borrower_id = bytes.fromhex(after["borrower_id"])
    if kind == TRANSFER:
        return leader.TransferGrant(number, stream, borrower_id, session_id)
    if kind == REVOKE:
        return leader.RevokeGrant(number, stream, session_id, borrower_id)
    return leader.Unpin(number, stream, session_id)
