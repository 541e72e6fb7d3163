"""Shards of groups: what each field means, and how a table shows it."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from dss_core.ids import StreamName
from dssctl.cells import shown_lag
from dssctl.fields.model import Fields, items, moment, number, text, texts, truth
from dssctl.items import item_of
from dssctl.output import Column, Instant, Item, Kind

if TYPE_CHECKING:
    from dss_client import ShardedGroup
    from dss_client.group_values import ShardStanding

SHARD: Fields = (
    text("group", "NAME of its group."),
    text("filter", "The filter of its group."),
    number("shard", "Which of them, from 0."),
    number("shards", "How many the group has."),
    texts(
        "partitions",
        "Its partitions, such as orders/0/0-3, of each storage topic that is still read.",
    ),
    number("streams", "Number of its streams."),
    texts("holders", "The member that has it; more than one only while it changes hands."),
    number("lag", "Records that are not acknowledged yet."),
    truth("lag_exact", "Whether the lag is counted; else it is an upper bound, shown as <=."),
    moment("oldest_unacked_at", "When the oldest unacknowledged record came.", optional=True),
    number("retrying", "Records that failed and wait for their next attempt."),
    number("dead", "Dead letters."),
    truth("even", "Whether every shard of the group has as many streams as any other."),
    truth("aligned", "Whether all records of a key are in one shard, older and newer ones."),
    items("grants", "Grant", "Its streams.", absent=True),
)

SHARD_KIND = Kind(
    "Shard",
    (
        Column("shard", "SHARD", right=True),
        Column("partitions", "PARTITIONS"),
        Column("holders", "HOLDER"),
        Column("lag", "LAG", right=True, cell=shown_lag),
        Column("oldest_unacked_at", "OLDEST", right=True),
        Column("retrying", "RETRYING", right=True),
        Column("dead", "DEAD", right=True),
        Column("even", "EVEN"),
        Column("aligned", "ALIGNED"),
        Column("streams", "STREAMS", right=True, wide=True),
        Column("shards", "OF", right=True, wide=True),
        Column("group", "GROUP", wide=True),
        Column("filter", "FILTER", wide=True),
    ),
    lambda item: f"{item['group']}@{item['filter']} {item['shard']}",
)


def shard_item(sharded: "ShardedGroup", shard: "ShardStanding") -> Item:
    """A shard as the renderer takes it."""
    oldest_us = shard.oldest_unacked_us
    return item_of(
        "Shard",
        shard,
        group=sharded.group,
        filter=sharded.filter,
        shard=shard.number,
        shards=sharded.shards,
        partitions=list(_partitions(shard.streams)),
        streams=len(shard.streams),
        oldest_unacked_at=None if oldest_us is None else Instant(oldest_us),
        even=sharded.even,
        aligned=sharded.aligned,
    )


def _partitions(streams: Sequence[str]) -> Iterator[str]:
    """TOPIC/ORDINAL/FIRST-LAST of each storage topic, without what was read to its end."""
    names = enumerate(sorted(map(StreamName.parse, streams)))
    for (topic, ordinal, _), run in groupby(
        names, key=lambda each: (*each[1][:2], each[1].partition - each[0])
    ):
        own = [name.partition for _, name in run]
        last = f"-{own[-1]}" if len(own) > 1 else ""
        yield f"{topic}/{ordinal}/{own[0]}{last}"
