"""The state of each shard of a group.

Invariant: every unfinished stream counts in exactly one shard. This module only adds up the values
of a survey.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from dss_core.errors import ShardsNeedOrder
from dss_core.shards import better_counts, is_aligned, is_even
from dssd.leaders.lag import NOTHING_QUEUED, GroupSurvey, Queued, StreamSurvey
from dssd.leaders.ordering import topic_in_order
from dssd.leaders.slices import FINISHED, Span, slicing_of, span_of
from dssd.store.rows import GroupRow
from dssd.topics.catalogue import Catalogue


@dataclass(frozen=True, slots=True)
class ShardStanding:
    """One shard: its streams, their holders, and their lag."""

    number: int
    streams: tuple[str, ...]
    holders: tuple[str, ...]
    """Client ids; more than one only while it changes hands."""
    lag: int
    lag_exact: bool
    oldest_unacked_us: int | None
    queued: Queued


@dataclass(frozen=True, slots=True)
class Sharded:
    """All shards of a group."""

    span: Span
    shards: int
    even: bool
    aligned: bool
    better: tuple[int, ...]
    each: tuple[ShardStanding, ...]
    without: tuple[str, ...]
    """Client ids of members that have none."""


def sharded(group: GroupRow, survey: GroupSurvey, catalogue: Catalogue) -> Sharded:
    """The shards of a group.

    Raises:
        ShardsNeedOrder: it has none.
        OrderNeedsOneTopic: its topic is gone.
    """
    slicing = slicing_of(group, catalogue)
    if slicing is None:
        raise ShardsNeedOrder(
            group=group.full_name, new=f"'NAME@{group.filter}'", shards=group.shards or 1
        )
    span = span_of(topic_in_order(group, catalogue), survey)
    streams: dict[int, list[StreamSurvey]] = {number: [] for number in range(slicing.of)}
    for stream in survey.streams:
        if stream.view.state != FINISHED:
            streams[slicing.shard_of(stream.view.stream).number].append(stream)
    holding = {stream.view.owner for each in streams.values() for stream in each}
    return Sharded(
        span,
        slicing.of,
        is_even(slicing.of, span.layouts),
        is_aligned(slicing.of, span.router, span.layouts),
        better_counts(slicing.of, span.router, span.layouts),
        tuple(_standing(number, own) for number, own in streams.items()),
        tuple(sorted(each.client_id for each in survey.members if each.borrower_id not in holding)),
    )


def _standing(number: int, streams: Sequence[StreamSurvey]) -> ShardStanding:
    times = [each.oldest_unacked_us for each in streams if each.oldest_unacked_us is not None]
    return ShardStanding(
        number,
        tuple(str(each.name) for each in streams),
        tuple(sorted({each.view.client_id for each in streams} - {""})),
        sum(each.lag for each in streams),
        all(each.lag_exact for each in streams),
        min(times, default=None),
        reduce(Queued.plus, (each.queued for each in streams), NOTHING_QUEUED),
    )
