"""Groups, their members and their leaders: what each field means, and how a table shows it."""

from typing import TYPE_CHECKING

from dss_core.forecast import drained_in_ms
from dss_core.times import text_of_span
from dssctl.cells import HEALTH_STYLES, shown_lag
from dssctl.cells import rate as rate_cell
from dssctl.fields.describing import PAGE
from dssctl.fields.model import Fields, items, moment, number, rate, size, span, text, truth
from dssctl.forecast import forecast_text
from dssctl.items import item_of
from dssctl.output import Column, Instant, Item, Kind

if TYPE_CHECKING:
    from dss_client import Group

FATES = (
    number("acked", "Records that members acknowledged."),
    number("filtered", "Records that the group's filter left out."),
    number("lost", "Records that retention removed before they were acknowledged."),
    number("damaged", "Damaged records that the group skipped."),
    number("moved", "Records that an operator skipped, by skip or seek."),
    number("retried", "Records that went to a retry queue or to the dead letters."),
)
RATES = (
    rate("arrivals_1m", "Records a second that arrived in its streams, over the last minute."),
    rate(
        "arrivals_5m", "Records a second that arrived in its streams, over the last five minutes."
    ),
    rate("acks_1m", "Records a second that it finished, over the last minute."),
    rate("acks_5m", "Records a second that it finished, over the last five minutes."),
)

GROUP: Fields = (
    number("group_id", "Its number, never reused."),
    text("name", "Its name; unique together with the filter."),
    text("filter", "The subjects that it reads, with + for one level and # for all below."),
    text("kind", "shared, queue, or exclusive: of one session."),
    text("state", "active, idle (no members), rebalancing, paused, draining or stalled."),
    text("state_reason", "Why it is in that state.", optional=True),
    text("health", "healthy, attention or problem."),
    number("borrowers", "Members that are connected or expected back."),
    number("standby", "Members without a stream: there are more members than streams."),
    number("streams", "Streams that it reads."),
    number("lag", "Records that are not acknowledged yet."),
    truth("lag_exact", "Whether the lag is counted; else it is an upper bound, shown as <=."),
    moment("oldest_unacked_at", "When the oldest unacknowledged record came.", optional=True),
    number("leader_epoch", "How often a leader took the group over."),
    text("start", "Where it began when it was created."),
    span("ack_wait_ms", "How long a record may stay unacknowledged before it is sent again."),
    text("protocol", "borrow or lease: how streams are lent to members."),
    text("on_damage", "pass over damaged records, or stall before them."),
    number(
        "max_deliver", "Failures that make a record a dead letter; 0: it is sent again without end."
    ),
    text("backoff", "How long a record waits after each failure; the last repeats.", optional=True),
    number("queue_records", "Limit of records in the queues of one stream."),
    size("queue_bytes", "Limit of bytes in the queues of one stream."),
    number("retrying", "Records that failed and wait for their next attempt."),
    number("dead", "Dead letters; dssctl dlq ls shows them."),
    truth("ordered", "Whether it keeps the order of keys, also through retries."),
    text(
        "on_dead_letter",
        "block: a dead letter holds up its key; or skip. None in a group without order.",
        optional=True,
    ),
    text(
        "keyless",
        "deliver, or dead: what happens to records without a key in an ordered group.",
        optional=True,
    ),
    text("allocation", "shard: one member has all streams of a shard; or sticky: one by one."),
    number("shards", "Its number of shards; 0: the base of its topic's partitions."),
    span("unused_ms", "It is removed once no client has subscribed for so long; 0: it stays."),
    text("metadata", "Metadata that its creator stored."),
    *FATES,
    number("revision", "Rises with each operation; --if-revision compares it."),
    truth("paused", "Whether an operator paused its delivery."),
    moment("paused_until", "When the pause ends by itself.", optional=True),
    moment("created_at", "When it was created."),
    *RATES,
    span(
        "drain_ms",
        "Forecast until the lag is gone, by the rates of the last minute; none if it does "
        "not shrink, or a record fails again and again.",
        optional=True,
        fades=True,
    ),
    moment("leader_since", "Since when it has a leader; none without one.", optional=True),
    items("members", "Borrower", "Its members; of describe only.", absent=True),
    items("grants", "Grant", "Its streams; of describe only.", absent=True),
    items("stuck", "Stuck", "Streams without progress, and why; of describe only.", absent=True),
    *(each for each in PAGE if each.name != "health"),
)

BORROWER: Fields = (
    text("group", "NAME@FILTER of its group.", absent=True),
    text("borrower_id", "Its id; new with each subscription."),
    text("client_id", "The client it belongs to."),
    number("streams", "Streams that it holds."),
    truth("standby", "Whether it waits for a stream."),
    moment("connected_at", "When it joined."),
    number("lag", "Unacknowledged records of the streams that it holds."),
    rate("acks_1m", "Records a second that it acknowledged, over the last minute."),
    rate("acks_5m", "Records a second that it acknowledged, over the last five minutes."),
    items("grants", "Grant", "The streams that it holds; of describe only.", absent=True),
)

LEADER: Fields = (
    text("group", "NAME@FILTER of the group."),
    text("state", "leading, or none."),
    number("epoch", "How often a leader took the group over."),
    moment("since", "Since when it leads.", optional=True),
    number("members", "Members of the group."),
    number("streams", "Streams that the group reads."),
    text("protocol", "borrow or lease: how streams are lent to members."),
    text("daemon", "Which run of the daemon it is part of.", optional=True),
    number("pid", "The process of that daemon.", optional=True),
    items("grants", "LedStream", "The streams that it lends; of describe only.", absent=True),
)


def _ack_wait(item: Item, _now_us: int) -> str:
    wait_ms = item["ack_wait_ms"]
    assert isinstance(wait_ms, int)
    return text_of_span(wait_ms)


def lag_and_failed(item: Item, now_us: int) -> str:
    """The lag, then the records in the queues: unfinished too, but not counted by the lag."""
    failed = [f"{item[each]:,} {each}" for each in ("retrying", "dead") if item[each]]
    return " +".join([shown_lag(item, now_us), *failed])


def drained(item: Item, now_us: int) -> str:
    """The time until the group has caught up, as a forecast."""
    at, drain_ms = item["oldest_unacked_at"], item["drain_ms"]
    drained_ms = drained_in_ms(
        int(_number(item, "lag")),
        drain_ms if isinstance(drain_ms, int) else None,
        (now_us - at.us) / 1_000 if isinstance(at, Instant) else None,
        [_number(item, name) for name in ("arrivals_1m", "arrivals_5m")],
        [_number(item, name) for name in ("acks_1m", "acks_5m")],
    )
    return forecast_text(drained_ms)


def _number(item: Item, field: str) -> float:
    value = item[field]
    assert isinstance(value, int | float)
    return value


def _paused_until(item: Item, _now_us: int) -> str:
    until = item["paused_until"]
    if isinstance(until, Instant):
        return until.rfc3339()
    return "no end" if item["paused"] else "-"


GROUP_KIND = Kind(
    "Group",
    (
        Column("name", "NAME", width=12),
        Column("filter", "FILTER", width=12),
        Column(
            "state",
            "STATE",
            width=11,
            styles={
                "active": "green",
                "rebalancing": "yellow",
                "paused": "yellow",
                "stalled": "bold red",
            },
        ),
        Column("borrowers", "BORROWERS", right=True, width=9),
        Column("streams", "STREAMS", right=True, width=7),
        Column("lag", "LAG", right=True, width=8, cell=lag_and_failed),
        Column("oldest_unacked_at", "OLDEST", right=True, width=6),
        Column("damaged", "DAMAGED", right=True, width=7),
        Column("leader_epoch", "EPOCH", right=True, width=5),
        Column("arrivals_1m", "IN/S", right=True, cell=rate_cell("arrivals_1m"), wide=True),
        Column("arrivals_5m", "IN/S-5M", right=True, cell=rate_cell("arrivals_5m"), wide=True),
        Column("acks_1m", "ACKS/S", right=True, cell=rate_cell("acks_1m"), wide=True),
        Column("acks_5m", "ACKS/S-5M", right=True, cell=rate_cell("acks_5m"), wide=True),
        Column("drain_ms", "DRAINED-IN", right=True, cell=drained, wide=True),
        Column("health", "HEALTH", styles=HEALTH_STYLES, wide=True),
        Column("kind", "KIND", wide=True),
        Column("standby", "STANDBY", right=True, wide=True),
        Column("start", "START", wide=True),
        Column("ack_wait_ms", "ACK-WAIT", right=True, cell=_ack_wait, wide=True),
        Column("protocol", "PROTOCOL", wide=True),
        Column("on_damage", "ON-DAMAGE", wide=True),
        Column("acked", "ACKED", right=True, wide=True),
        Column("filtered", "FILTERED", right=True, wide=True),
        Column("lost", "LOST", right=True, wide=True),
        Column("moved", "MOVED", right=True, wide=True),
        Column("retrying", "RETRYING", right=True, wide=True),
        Column("dead", "DEAD", right=True, wide=True),
        Column("ordered", "ORDERED", wide=True),
        Column("on_dead_letter", "ON-DEAD-LETTER", wide=True),
        Column("keyless", "KEYLESS", wide=True),
        Column("allocation", "ALLOCATION", wide=True),
        Column("shards", "SHARDS", right=True, wide=True),
        Column("revision", "REVISION", right=True, wide=True),
        Column("paused_until", "PAUSED-UNTIL", cell=_paused_until, wide=True),
        Column("created_at", "AGE", right=True, wide=True),
        Column("state_reason", "REASON", wide=True),
    ),
    lambda item: f"{item['name']}@{item['filter']}",
)
BORROWER_KIND = Kind(
    "Borrower",
    (
        Column("client_id", "CLIENT"),
        Column("streams", "STREAMS", right=True),
        Column("standby", "STANDBY"),
        Column("connected_at", "CONNECTED"),
        Column("lag", "LAG", right=True),
        Column("acks_1m", "ACKS/S", right=True, cell=rate_cell("acks_1m")),
        Column("acks_5m", "ACKS/S-5M", right=True, cell=rate_cell("acks_5m"), wide=True),
        Column("borrower_id", "BORROWER", wide=True),
    ),
    lambda item: str(item["borrower_id"]),
)


def group_item(group: "Group") -> Item:
    """A group as the renderer takes it."""
    backoff = ",".join(map(text_of_span, group.backoff_ms)) or None
    return item_of("Group", group, backoff=backoff)


LEADER_KIND = Kind(
    "Leader",
    (
        Column("group", "GROUP", width=24),
        Column("state", "STATE", width=11, styles={"leading": "green"}),
        Column("epoch", "EPOCH", right=True, width=5),
        Column("since", "SINCE", right=True, width=7),
        Column("members", "MEMBERS", right=True, width=7),
        Column("streams", "STREAMS", right=True, width=7),
        Column("protocol", "PROTOCOL", width=8),
        Column("daemon", "DAEMON", wide=True),
        Column("pid", "PID", right=True, wide=True),
    ),
    lambda item: str(item["group"]),
)
