"""Changes the number of shards of an ordered group: an edit of its row, and a rebalance.

The commit holds the row; its leader then cuts the streams anew and shares them out. Streams that
change their owners are handed over one by one, all others are not touched. Nothing is copied, and
the order of keys does not depend on the number: waiting records of a key stay with their stream. So
the number may be changed or undone at any time, even while streams still change hands. An older
group that is shared out stream by stream is shared out by shards from its first number on.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from shlex import quote

from dss_core.changes import Change, SetShardCount, StreamMove, Undo
from dss_core.counted import counted
from dss_core.errors import NotForPrivateGroups, ShardsNeedOrder
from dss_core.shards import better_counts, is_aligned, is_even
from dssd.leaders.declarations import SHARD
from dssd.leaders.groups import Groups
from dssd.leaders.ordering import topic_in_order
from dssd.leaders.registry import Registry
from dssd.leaders.slices import Span, check_shard_count, slicing_of, span_of
from dssd.limits import REVOKE_DEADLINE_MS
from dssd.machines.leader.events import ShareByShards
from dssd.machines.leader.lent_stream import NOT_LENT, StreamState
from dssd.operations.kinds.clients_named import named
from dssd.operations.kinds.edited_fields import (
    Fields,
    changed_fields,
    fields_before,
    present_fields,
    taken_back,
)
from dssd.operations.kinds.final import Unstoppable
from dssd.operations.kinds.members import Membership
from dssd.operations.plans import Begun, Plan, subject_of
from dssd.store.port import Store
from dssd.store.rows import GroupRow, OperationRow
from dssd.topics.catalogue import Catalogue

SET_COUNT = "shards.set-count"


class ShardCounts(Unstoppable):
    """Plans and begins changes of a group's number of shards."""

    def __init__(
        self, store: Store, groups: Groups, registry: Registry, catalogue: Catalogue
    ) -> None:
        self._store = store
        self._groups = groups
        self._registry = registry
        self._catalogue = catalogue

    async def plan(self, change: SetShardCount) -> Plan:
        """What so many shards would move, and how well they would fit.

        Raises:
            GroupNotFound, GroupAmbiguous, NotForPrivateGroups, ShardsNeedOrder,
                OrderNeedsOneTopic, ShardCountUnfit: the group cannot have them.
        """
        group = self._groups.find(change.group)
        if group.session_id is not None:
            raise NotForPrivateGroups(group=subject_of(group), operation=SET_COUNT)
        _check_ordered(group, change.shards)
        span = await self._span(group)
        check_shard_count(group, change.shards, span)
        fields = {"shards": change.shards, "allocation": SHARD}
        return await self._planned(change, group, span, fields)

    async def begin(self, plan: Plan, number: int) -> Begun:
        """The group's new row, and the instruction to its leader."""
        change = plan.change
        assert isinstance(change, SetShardCount)
        assert plan.group is not None
        return self._begun(plan.group, {"shards": change.shards, "allocation": SHARD}, number)

    async def plan_undo(self, undone: OperationRow) -> Plan:
        """What setting the former number would do.

        Raises:
            NotUndoable: it was changed again since.
            ShardsNeedOrder, OrderNeedsOneTopic: the group has no shards any more.
        """
        fields = await fields_before(self._store, undone)
        group = self._groups.get(undone.group_id)
        _check_ordered(group, int(fields.get("shards", group.shards)))
        span = await self._span(group)
        return taken_back(await self._planned(Undo(undone.number), group, span, fields), undone)

    async def begin_undo(self, undone: OperationRow, plan: Plan, number: int) -> Begun:
        """As `begin`."""
        assert plan.group is not None
        return self._begun(plan.group, await fields_before(self._store, undone), number)

    async def resumed(self, row: OperationRow) -> Begun:
        """Let the leader share out by the present row again."""
        return Begun(instruction=self._instruction(self._groups.get(row.group_id), row.number))

    def _instruction(self, group: GroupRow, number: int) -> ShareByShards:
        return ShareByShards(number, slicing_of(group, self._catalogue))

    def _begun(self, group: GroupRow, wanted: Fields, number: int) -> Begun:
        changed = changed_fields(group, wanted)
        edited = replace(group, **changed)
        return Begun(
            group=edited,
            instruction=self._instruction(edited, number),
            before=present_fields(group, changed),
            after=changed,
        )

    async def _span(self, group: GroupRow) -> Span:
        topic = topic_in_order(group, self._catalogue)
        return span_of(topic, await self._registry.survey(group))

    async def _planned(self, change: Change, group: GroupRow, span: Span, wanted: Fields) -> Plan:
        changed = changed_fields(group, wanted)
        edited = replace(group, **changed)
        live = Membership(group, await self._registry.survey(group))
        slicing = slicing_of(edited, self._catalogue)
        moves = tuple(self._moves(live, edited))
        shards = counted(slicing.of, "shard") if slicing else "no shards"
        what = "nothing would change" if not changed else f"{_moved(moves)}"
        effects = (
            *_fit(edited, span, slicing.of if slicing else 0),
            *_hands(live, moves, slicing.of if slicing else 0),
        )
        touched = {each for move in moves for each in (move.from_client_id, move.to_client_id)}
        return Plan(
            change=change,
            kind=SET_COUNT,
            subject=live.subject,
            revision=group.revision,
            summary=f"cut {live.subject} into {shards}: {what}",
            group=group,
            moves=moves,
            effects=effects if changed else (),
            members=tuple(sorted(touched - {""})) if changed else (),
            nothing_to_do=not changed,
            touches=(span.topic,),
            beside=(SET_COUNT,),
        )

    def _moves(self, live: Membership, edited: GroupRow) -> Iterator[StreamMove]:
        by_id = {stream.view.stream: stream for stream in live.survey.streams}
        slicing = slicing_of(edited, self._catalogue)
        for move in self._registry.planned_shares(live.group.group_id, slicing):
            stream, taker = by_id.get(move.stream), live.by_id(move.taker)
            if stream is not None and taker is not None:
                yield live.move(stream, live.by_id(move.giver), taker)


def _check_ordered(group: GroupRow, shards: int) -> None:
    if not group.ordered:
        new = quote(f"NAME@{group.filter}")
        raise ShardsNeedOrder(group=group.full_name, new=new, shards=max(shards, 1))


def _moved(moves: Sequence[StreamMove]) -> str:
    return counted(len(moves), "stream changes hands", "streams change hands")


def _fit(group: GroupRow, span: Span, shards: int) -> Iterator[str]:
    """How well so many shards fit what the group reads."""
    if not shards:
        yield "Streams are shared out one by one, and not by shards any more."
        return
    for part in span.parts:
        few, rest = divmod(part.partitions, shards)
        most = few + bool(rest)
        each = str(few) if not rest else f"{few} or {most}"
        yield (
            f"{span.topic}/{part.ordinal}: {counted(part.partitions, 'partition')}, {each} a shard."
        )
    even = is_even(shards, span.layouts)
    yield (
        "Even: each shard has as many streams as any other."
        if even
        else "Uneven: some shards have more streams than others, and so more records."
    )
    if len(span.parts) > 1:
        yield (
            "Aligned: all records of a key are in one shard, older and newer ones."
            if is_aligned(shards, span.router, span.layouts)
            else "Not aligned: older records of a key may be in another shard than newer ones. Its "
            "order is kept, but a member that keeps state by shard may see only some of them."
        )
    better = better_counts(shards, span.router, span.layouts)
    if better:
        nearest = " or ".join(f"{each:,}" for each in better)
        yield f"Counts near it that are even and aligned: {nearest}."


def _hands(live: Membership, moves: Sequence[StreamMove], shards: int) -> Iterator[str]:
    streams = [each for each in live.survey.streams if StreamState(each.view.state) not in NOT_LENT]
    moved = {move.stream for move in moves if move.from_client_id}
    if not live.staying:
        yield "Nobody is a member now, so nothing is handed over."
        return
    stay = len(streams) - len(moves)
    yield (
        f"{_moved(moves).capitalize()}, in order; {counted(stay, 'stream stays', 'streams stay')} "
        "and go on untouched."
    )
    givers = sorted({move.from_client_id for move in moves} - {""})
    if moved:
        yield (
            f"Streams that move stand still until {named(givers)} settled their records in "
            f"flight, {REVOKE_DEADLINE_MS // 1_000} s at most. Nothing is copied, and nothing "
            "that was acknowledged comes again."
        )
    kept = Counter(each.client_id for each in live.staying if each.by_shard)
    if kept:
        yield (
            f"{named(sorted(kept))} keep state by shard: they give up all their shards first, and "
            "are told which of the new ones they have."
        )
    if shards and len(live.staying) > shards:
        more = len(live.staying) - shards
        yield f"{counted(more, 'member has', 'members have')} no shard, and stand by."
