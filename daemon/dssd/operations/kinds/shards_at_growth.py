"""Adapts the number of shards of ordered groups when their topic grows.

A plan says how the shards of each group fit after the growth, and which number is offered
(`dss_core.shards.grown_count`). If asked for, the growth sets these numbers after the switch, each
by an operation of its own: a *part* of the growth, which has its own undo. A part is identified by
the number of the growth and its own, so a growth that the next daemon resumes applies no part
twice. Invariant: a group that was changed since the plan is not cut. Nothing here grows topics.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from shlex import quote
from typing import Protocol

from dss_core.changes import Change, GroupShards, GrowTopic, SetShardCount
from dss_core.counted import counted
from dss_core.errors import DssError, IllegalArgument, RevisionMoved, ShardsNeedOrder
from dss_core.shards import grown_count, is_aligned, is_even
from dssd.leaders.declarations import SHARD
from dssd.leaders.groups import Groups
from dssd.leaders.registry import Registry
from dssd.leaders.slices import Span, check_shard_count, grown_span
from dssd.operations.history import DONE
from dssd.operations.plans import subject_of
from dssd.store.rows import GroupRow, OperationRow
from dssd.topics.model import StorageTopic, Topic


class Parts(Protocol):
    """What this asks of the operations."""

    async def apply_part(
        self, whole: int, part: int, change: Change, *, if_revision: int
    ) -> OperationRow:
        """Apply a change that is a part of an operation which runs.

        Raises:
            DssError: it cannot be done.
        """

    async def ended(self, number: int) -> OperationRow:
        """The operation, as soon as it has ended."""

    def moved_since(self, subject: str, planned: int, found: int) -> RevisionMoved:
        """The exception for a subject that was changed since the plan."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A number of shards for a group, offered for its streams after the growth."""

    group: GroupRow
    span: Span
    stays: int
    """The number of shards that it has after the growth without a change."""
    fits: int
    """The number that is offered; equal to ``stays`` if that fits."""


class ShardsAtGrowth:
    """Plans the counts of a growth, and sets them."""

    def __init__(self, groups: Groups, registry: Registry, parts: Parts) -> None:
        self._groups = groups
        self._registry = registry
        self._parts = parts

    async def offers(
        self, topic: Topic, added: StorageTopic, readers: Sequence[GroupRow]
    ) -> list[Offer]:
        """An offer for each group that has shards."""
        found: list[Offer] = []
        for group in readers:
            if group.allocation == SHARD:
                span = grown_span(topic, added, await self._registry.survey(group))
                count = group.shards or added.base
                fits = grown_count(count, span.router, span.layouts)
                found.append(Offer(group, span, count, fits))
        return found

    def resolved(self, change: GrowTopic, offers: Sequence[Offer]) -> GrowTopic:
        """The growth with the counts that it sets.

        Raises:
            RevisionMoved: a group was changed since it was planned.
            ShardsNeedOrder, ShardCountUnfit, IllegalArgument: one cannot be cut so.
        """
        counts = change.shard_counts
        if counts:
            self._check(counts, {each.group.group_id: each for each in offers})
        elif change.with_shards:
            counts = tuple(
                GroupShards(subject_of(each.group), each.fits, each.group.revision)
                for each in offers
                if each.fits != each.stays
            )
        return GrowTopic(change.topic, change.partitions, bool(counts), counts)

    def _check(self, counts: Sequence[GroupShards], offers: dict[int, Offer]) -> None:
        for each in counts:
            group = self._groups.find(each.group)
            if group.revision != each.revision:
                raise self._parts.moved_since(subject_of(group), each.revision, group.revision)
            offer = offers.get(group.group_id)
            if not group.ordered:
                new = quote(f"NAME@{group.filter}")
                raise ShardsNeedOrder(group=group.full_name, new=new, shards=max(each.shards, 1))
            if offer is None:
                rule = "it reads the topic that grows, and is shared out by shards"
                raise IllegalArgument(argument=f"the group {each.group}", rule=rule)
            check_shard_count(group, each.shards, offer.span)

    async def cut(self, growth: int, counts: Sequence[GroupShards]) -> tuple[list[int], list[str]]:
        """Set the numbers, and wait until that is done; returns the operations, and sentences about
        groups that were not cut."""
        begun: list[tuple[GroupShards, int]] = []
        missed: list[str] = []
        for part, each in enumerate(counts, 1):
            change = SetShardCount(each.group, each.shards)
            try:
                row = await self._parts.apply_part(growth, part, change, if_revision=each.revision)
            except DssError as refused:
                missed.append(_missed(each, refused.message))
            else:
                begun.append((each, row.number))
        for each, number in begun:
            row = await self._parts.ended(number)
            if row.state != DONE:
                missed.append(_missed(each, row.failure))
        return [number for _, number in begun], missed


def told_of_shards(offers: Sequence[Offer], change: Change, *, asked: bool) -> Iterator[str]:
    """The sentences of the plan about each group, and about the numbers that it sets."""
    by_flag = isinstance(change, GrowTopic)
    set_then = change.shard_counts if isinstance(change, GrowTopic) else ()
    counts = {each.group: each.shards for each in set_then}
    for offer in offers:
        subject = subject_of(offer.group)
        if subject in counts:
            yield _cut(offer, counts[subject])
        else:
            yield _kept(offer, by_flag=by_flag)
    if counts:
        yield (
            "Each of these counts is set by an operation of its own, which dssctl ops undo takes "
            "back; the growth stays."
        )
    elif asked:
        why = "each group with shards fits as it is" if offers else "no group with shards reads it"
        yield f"--with-shards changes nothing: {why}."


def _cut(offer: Offer, shards: int) -> str:
    new = f"{offer.span.topic}/{offer.span.parts[-1].ordinal}"
    return (
        f"{subject_of(offer.group)} is cut into {counted(shards, 'shard')} instead of "
        f"{offer.stays:,}, once {new} takes records: {_fit(offer.span, shards)}."
    )


def _kept(offer: Offer, *, by_flag: bool) -> str:
    shards = counted(offer.stays, "shard")
    told = f"{subject_of(offer.group)} has {shards} then: {_fit(offer.span, offer.stays)}."
    most = max(part.partitions for part in offer.span.parts)
    if offer.fits != offer.stays:
        command = f"dssctl shards set-count {quote(offer.group.full_name)} {offer.fits}"
        flag = "--with-shards sets that count, or later " if by_flag else ""
        return f"{told} {offer.fits:,} fit better, {_fit(offer.span, offer.fits)}: {flag}{command}"
    if offer.stays < most:
        return f"{told} It may have up to {most:,}, for as many members."
    return told


def _fit(span: Span, shards: int) -> str:
    new = span.parts[-1]
    even = "even" if is_even(shards, span.layouts) else "uneven"
    if even == "uneven" and new.partitions % shards == 0:
        even = f"even in {span.topic}/{new.ordinal}, uneven in what is older"
    aligned = "aligned" if is_aligned(shards, span.router, span.layouts) else "not aligned"
    return f"{even}, and {aligned}"


def _missed(count: GroupShards, why: str) -> str:
    command = f"dssctl shards set-count {quote(count.group)} {count.shards}"
    return f"{count.group} was not cut into {counted(count.shards, 'shard')}: {why} Then: {command}"
