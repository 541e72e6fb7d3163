"""The servicers of `Groups` and `Grants`: decode, ask groups and registry, encode."""

from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Any

import grpc.aio

from dss_api.v1 import groups_pb2, groups_pb2_grpc, types_pb2
from dss_api.values import decoded, encoded, message_of, word_of
from dss_core.errors import DssError, GroupNotFound, IllegalArgument, StreamNotRead
from dss_core.filters import SubscriptionFilter
from dssd.leaders.declarations import AskedRetries, policy_of
from dssd.leaders.filtered_lag import CountBudget
from dssd.leaders.groups import Groups
from dssd.leaders.lag import GroupSurvey, StreamSurvey, hindrance_sentence
from dssd.leaders.registry import Registry
from dssd.leaders.unused_groups import UnusedGroups
from dssd.loop_yield import LoopTurn
from dssd.machines.start_point import shown_start
from dssd.questions.overviews import Overview
from dssd.questions.questions import Questions
from dssd.questions.rates import NO_RATES, Rates
from dssd.questions.samples import Movement, Sampler
from dssd.questions.selection import GroupSelection
from dssd.questions.shards import Sharded, sharded
from dssd.questions.verdicts import Verdict, verdict_of
from dssd.rpc.audited_calls import note_unchanged
from dssd.rpc.questions import QuestionCalls, stuck_message
from dssd.rpc.start_points import start_from
from dssd.store.rows import GroupRow
from dssd.topics.catalogue import Catalogue

GROUPS_LISTED_MAX = 5_000
"""Groups in one answer: some two megabytes; a caller asks for the next page."""


Context = grpc.aio.ServicerContext[Any, Any]


class GroupsServicer(groups_pb2_grpc.GroupsServicer):
    """Serves what operators ask of groups."""

    def __init__(
        self,
        groups: Groups,
        registry: Registry,
        catalogue: Catalogue,
        questions: Questions,
        unused: UnusedGroups,
    ) -> None:
        self._unused = unused
        self._questions = questions
        self._calls = QuestionCalls(questions)
        self._groups = groups
        self._registry = registry
        self._catalogue = catalogue

    async def Create(
        self, request: groups_pb2.CreateGroupRequest, context: Context
    ) -> groups_pb2.Group:
        """Declare a group."""
        known = self._known(request.filter)
        group = await self._groups.declare(
            SubscriptionFilter.parse(request.filter),
            start=start_from(request.start) if request.HasField("start") else None,
            ack_wait_ms=request.ack_wait_ms if request.HasField("ack_wait_ms") else None,
            if_not_exists=request.if_not_exists,
            protocol=word_of(groups_pb2.GroupProtocol.DESCRIPTOR, "protocol", request.protocol),
            on_damage=word_of(groups_pb2.OnDamage.DESCRIPTOR, "on_damage", request.on_damage),
            retries=decoded(request, AskedRetries),
            metadata=request.metadata,
            unused_ms=request.unused_ms,
        )
        if known is not None and known.group_id == group.group_id:
            note_unchanged()
        survey = await self._registry.survey(group, budget=CountBudget())
        return group_message(self._overview(group, survey))

    async def List(
        self, request: groups_pb2.ListGroupsRequest, context: Context
    ) -> groups_pb2.ListGroupsReply:
        """The groups that are wanted, in the order that is; private ones only where asked for."""
        selection = GroupSelection(request.filter, request.sort, self._questions.clock.wall_us())
        every = await self._questions.overviews.all(private=request.all, budget=CountBudget())
        found = _behind(selection.of(every), request.page_token)
        size = min(request.page_size or GROUPS_LISTED_MAX, GROUPS_LISTED_MAX)
        page = found[:size]
        token = str(page[-1].group.group_id) if len(found) > size else ""
        return groups_pb2.ListGroupsReply(groups=map(group_message, page), next_page_token=token)

    async def Describe(
        self, request: groups_pb2.DescribeGroupRequest, context: Context
    ) -> groups_pb2.GroupDescription:
        """One group with its grants and members."""
        group = self._groups.find(request.group)
        turn = LoopTurn()
        survey = await self._registry.survey(group, turn, CountBudget())
        stuck = await self._questions.stuck.of_group(group, survey)
        overview = self._overview(group, survey)
        verdict = verdict_of(overview, stuck)
        return groups_pb2.GroupDescription(
            group=group_message(replace(overview, stuck=bool(stuck)), verdict),
            grants=await _grants(group, survey, self._questions.sampler, turn),
            borrowers=_borrowers(group, survey, self._questions.sampler),
            verdict=encoded(verdict, groups_pb2.Verdict),
            stuck=map(stuck_message, stuck),
        )

    async def Remove(
        self, request: groups_pb2.RemoveGroupRequest, context: Context
    ) -> groups_pb2.RemoveGroupReply:
        """Remove a group; its members are told."""
        try:
            group = self._groups.find(request.group)
        except GroupNotFound:
            if request.if_exists:
                note_unchanged()
                return groups_pb2.RemoveGroupReply(removed=False)
            raise
        if request.if_unused:
            await self._unused.remove(group)
        else:
            await self._groups.remove(group.group_id)
        return groups_pb2.RemoveGroupReply(removed=True)

    async def Offsets(
        self, request: groups_pb2.GroupOffsetsRequest, context: Context
    ) -> groups_pb2.GroupOffsetsReply:
        """The progress of a group, named so that another daemon can import it."""
        group = self._groups.find(request.group)
        turn = LoopTurn()
        survey = await self._registry.survey(group, turn)
        by_name = {str(stream.name): stream for stream in survey.streams}
        for wanted in request.streams:
            if wanted not in by_name:
                raise StreamNotRead(group=request.group, stream=wanted)
        reply = groups_pb2.GroupOffsetsReply(group=group.full_name)
        for name in request.streams or by_name:
            await turn.give_way()
            offsets = self._offsets(by_name[name])
            if offsets is not None:
                reply.streams.append(offsets)
            elif request.streams:
                raise StreamNotRead(group=request.group, stream=name)
        return reply

    async def Why(self, request: groups_pb2.WhyRequest, context: Context) -> groups_pb2.WhyReply:
        """Where a record stands for a group, and why it does not come."""
        return await self._calls.why(request)

    async def Stuck(
        self, request: groups_pb2.StuckRequest, context: Context
    ) -> groups_pb2.StuckReply:
        """Groups and streams without progress, and the reasons."""
        return await self._calls.stuck(request)

    async def Shards(
        self, request: groups_pb2.ShardsRequest, context: Context
    ) -> groups_pb2.ShardsReply:
        """The state of each shard of a group."""
        group = self._groups.find(request.group)
        survey = await self._registry.survey(group, LoopTurn(), CountBudget())
        return _shards(group, sharded(group, survey, self._catalogue))

    async def Verify(
        self, request: groups_pb2.VerifyRequest, context: Context
    ) -> AsyncGenerator[groups_pb2.VerifyReply, None]:
        """Verify the counts of a group, stream by stream."""
        async with aclosing(self._calls.verify(request)) as replies:
            async for reply in replies:
                yield reply

    def _overview(self, group: GroupRow, survey: GroupSurvey) -> Overview:
        since_ms, error = self._registry.leader_since_ms(group.group_id), self._questions.error_of
        return Overview.of_survey(group, survey, self._questions.sampler, since_ms, error(group))

    def _known(self, written: str) -> GroupRow | None:
        with suppress(DssError):  # it does not exist, or its filter is refused
            return self._groups.find(written)
        return None

    def _offsets(self, stream: StreamSurvey) -> groups_pb2.StreamOffsets | None:
        """The offsets of a stream; None if it was removed meanwhile."""
        name = stream.name
        topic = self._catalogue.find(name.topic)
        part = None if topic is None else topic.part(name.ordinal)
        if part is None:
            return None
        return message_of(
            groups_pb2.StreamOffsets, name, stream, stream.view, partitions=part.partitions
        )


class GrantsServicer(groups_pb2_grpc.GrantsServicer):
    """Serves what operators ask of grants."""

    def __init__(self, groups: Groups, registry: Registry, sampler: Sampler) -> None:
        self._groups = groups
        self._registry = registry
        self._sampler = sampler

    async def List(
        self, request: groups_pb2.ListGrantsRequest, context: Context
    ) -> groups_pb2.ListGrantsReply:
        """The grants of one group, or of all, free streams too."""
        wanted = (self._groups.find(request.group),) if request.group else self._groups.groups()
        reply = groups_pb2.ListGrantsReply()
        turn, budget = LoopTurn(), CountBudget()
        for group in wanted:
            survey = await self._registry.survey(group, turn, budget)
            reply.grants.extend(await _grants(group, survey, self._sampler, turn))
        return reply


def _behind(overviews: list[Overview], token: str) -> list[Overview]:
    """The groups after the last one of the previous page."""
    if not token:
        return overviews
    found = (at for at, each in enumerate(overviews) if str(each.group.group_id) == token)
    at = next(found, None)
    if at is None:
        rule = "it is that of an answer; if its group is gone, list anew"
        raise IllegalArgument(argument="page_token", rule=rule)
    return overviews[at + 1 :]


def group_message(overview: Overview, verdict: Verdict | None = None) -> groups_pb2.Group:
    """A group on the wire, with the verdict on it where more is known than a list knows."""
    group = overview.group
    policy = policy_of(group)
    told = {} if group.ordered else {"on_dead_letter": 0, "keyless": 0}
    return message_of(
        groups_pb2.Group,
        overview,
        overview.group,
        start=shown_start(overview.group.start),
        backoff_ms=policy.backoff_ms if policy else (),
        drain_ms=overview.drain_ms,
        health=(verdict or verdict_of(overview)).level,
        **told,
    )


def _shards(group: GroupRow, found: Sharded) -> groups_pb2.ShardsReply:
    return message_of(
        groups_pb2.ShardsReply,
        found,
        group=group.name,
        filter=group.filter,
        storage_topics=[
            message_of(groups_pb2.ShardedStorage, part, name=f"{found.span.topic}/{part.ordinal}")
            for part in found.span.parts
        ],
        each=[message_of(groups_pb2.Shard, shard, shard.queued) for shard in found.each],
    )


async def _grants(
    group: GroupRow, survey: GroupSurvey, sampler: Sampler, turn: LoopTurn
) -> list[groups_pb2.Grant]:
    grants = []
    for stream in survey.streams:
        await turn.give_way()
        movement = sampler.movement(group.group_id, stream.view.stream)
        grants.append(_grant(group, stream, movement))
    return grants


def _grant(group: GroupRow, stream: StreamSurvey, movement: Movement) -> groups_pb2.Grant:
    view = stream.view
    return message_of(
        groups_pb2.Grant,
        stream,
        view,
        movement,
        group=group.name,
        filter=group.filter,
        stream=str(stream.name),
        stall=hindrance_sentence(view, stream.waits_for),
        fates=encoded(view.fate.counts, groups_pb2.Fates),
        damaged=[types_pb2.Range(start=start, end=end) for start, end in view.fate.damaged],
    )


def _borrowers(group: GroupRow, survey: GroupSurvey, sampler: Sampler) -> list[groups_pb2.Borrower]:
    lags: Counter[bytes] = Counter()
    acks: dict[bytes, Rates] = {}
    for stream in survey.streams:
        owner = stream.view.owner
        if owner is not None:
            lags[owner] += stream.lag
            own = sampler.movement(group.group_id, stream.view.stream).acks
            acks[owner] = acks.get(owner, NO_RATES).plus(own)
    return [
        message_of(
            groups_pb2.Borrower,
            member,
            standby=member.streams == 0,
            connected_at_ms=survey.taken_at_ms - member.connected_for_ms,
            lag=lags[member.borrower_id],
            acks=encoded(acks.get(member.borrower_id, NO_RATES), groups_pb2.Rates),
        )
        for member in survey.members
    ]
