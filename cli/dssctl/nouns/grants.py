"""Streams of groups, and who holds them: what each field means, and how a table shows it."""

from typing import TYPE_CHECKING

from dss_core.times import text_of_span
from dssctl.cells import rate, shown_lag
from dssctl.fields.model import Fields, moment, number, ranges, span, text, truth
from dssctl.items import item_of
from dssctl.nouns.groups import FATES, RATES
from dssctl.output import Column, Item, Kind

if TYPE_CHECKING:
    from dss_client import Grant

GRANT: Fields = (
    text("group", "NAME of its group."),
    text("filter", "The filter of its group."),
    text("stream", "TOPIC/STORAGE/PARTITION, for example orders/0/3."),
    text("state", "free, granting, granted or revoking."),
    text("client_id", "Who holds it.", optional=True),
    number("grant_epoch", "Rises with each holder; an ack of an older one does not count."),
    number("floor", "The first offset that is not acknowledged."),
    ranges("acked_ranges", "Acknowledged above the floor."),
    number("acked_above_floor", "Number of records acknowledged above the floor."),
    number("end", "The offset after the last record."),
    number("lag", "Records that are not acknowledged yet."),
    truth("lag_exact", "Whether the lag is counted; else it is an upper bound, shown as <=."),
    moment("oldest_unacked_at", "When the oldest unacknowledged record came.", optional=True),
    span("state_age_ms", "How long it has been in its state.", fades=True),
    text("stall", "Why it makes no progress.", optional=True),
    *FATES,
    text("pinned_to", "The member that an operator gave it to.", optional=True),
    *RATES,
    ranges("damaged_ranges", "Damaged ranges that were skipped."),
)

LED_STREAM: Fields = (
    text("stream", "The stream."),
    text("state", "free, granting, granted or revoking."),
    number("grant_epoch", "Rises with each holder."),
    moment("since", "Since when it is in that state.", optional=True),
    text("client_id", "Who holds it.", optional=True),
)

STREAM_STATE_STYLES = {"granted": "green", "granting": "yellow", "revoking": "yellow"}


def _for_so_long(item: Item, _now_us: int) -> str:
    age_ms = item["state_age_ms"]
    assert isinstance(age_ms, int)
    return text_of_span(age_ms)


def _ranges(item: Item, _now_us: int) -> str:
    ranges = item["damaged_ranges"]
    assert isinstance(ranges, list)
    return " ".join(f"{start}-{end - 1}" for start, end in ranges)


IN_A_GROUP = (
    Column("stream", "STREAM"),
    Column("state", "STATE", styles=STREAM_STATE_STYLES),
    Column("client_id", "CLIENT"),
    Column("grant_epoch", "EPOCH", right=True),
    Column("floor", "FLOOR", right=True),
    Column("end", "END", right=True),
    Column("lag", "LAG", right=True, cell=shown_lag),
    Column("oldest_unacked_at", "OLDEST", right=True),
    Column("state_age_ms", "FOR", cell=_for_so_long),
    Column("stall", "STALLED"),
    Column("damaged", "DAMAGED", right=True, wide=True),
    Column("arrivals_1m", "IN/S", right=True, cell=rate("arrivals_1m"), wide=True),
    Column("acks_1m", "ACKS/S", right=True, cell=rate("acks_1m"), wide=True),
    Column("acked_above_floor", "ACKED-ABOVE", right=True, wide=True),
    Column("acked", "ACKED", right=True, wide=True),
    Column("filtered", "FILTERED", right=True, wide=True),
    Column("lost", "LOST", right=True, wide=True),
    Column("moved", "MOVED", right=True, wide=True),
    Column("retried", "RETRIED", right=True, wide=True),
    Column("pinned_to", "PINNED-TO", wide=True),
    Column("damaged_ranges", "DAMAGED-AT", cell=_ranges, wide=True),
)

GRANT_KIND = Kind(
    "Grant",
    (Column("group", "GROUP"), *IN_A_GROUP, Column("filter", "FILTER", wide=True)),
    lambda item: str(item["stream"]),
)
ONE_GROUPS_GRANT_KIND = Kind(
    "Grant",
    (
        Column("group", "GROUP", only_csv=True),
        *IN_A_GROUP,
        Column("filter", "FILTER", only_csv=True),
    ),
    lambda item: str(item["stream"]),
)
GROUP_GRANT_KIND = Kind("Grant", IN_A_GROUP, lambda item: str(item["stream"]))


def grant_item(grant: "Grant") -> Item:
    """A grant as the renderer takes it."""
    return item_of(
        "Grant",
        grant,
        damaged_ranges=[list(each) for each in grant.damaged],
        damaged=grant.fates.damaged,
        acked_ranges=[list(each) for each in grant.progress.ranges],
        acked_above_floor=grant.progress.acked_above_floor(),
    )


LED_STREAM_KIND = Kind(
    "LedStream",
    (
        Column("stream", "STREAM"),
        Column(
            "state", "STATE", styles={"granted": "green", "granting": "yellow", "free": "yellow"}
        ),
        Column("grant_epoch", "EPOCH", right=True),
        Column("since", "SINCE", right=True),
        Column("client_id", "CLIENT"),
    ),
    lambda item: str(item["stream"]),
)
