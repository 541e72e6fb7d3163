"""Groups and their members as items: what is printed of one, for people and programs.

No wire, no daemon.
"""

from typing import TYPE_CHECKING

from dss_core.forecast import drained_in_ms
from dss_core.times import text_of_span
from dssctl.cells import HEALTH_STYLES, rate, shown_lag
from dssctl.forecast import forecast_text
from dssctl.items import item_of
from dssctl.output import Column, Instant, Item, Kind

if TYPE_CHECKING:
    from dss_client import Borrower, Group


def _ack_wait(item: Item, _now_us: int) -> str:
    wait_ms = item["ack_wait_ms"]
    assert isinstance(wait_ms, int)
    return text_of_span(wait_ms)


def drained(item: Item, now_us: int) -> str:
    """The cell of the forecast."""
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
        Column("lag", "LAG", right=True, width=8, cell=shown_lag),
        Column("oldest_unacked_at", "OLDEST", right=True, width=6),
        Column("damaged", "DAMAGED", right=True, width=7),
        Column("leader_epoch", "EPOCH", right=True, width=5),
        Column("arrivals_1m", "IN/S", right=True, cell=rate("arrivals_1m"), wide=True),
        Column("arrivals_5m", "IN/S-5M", right=True, cell=rate("arrivals_5m"), wide=True),
        Column("acks_1m", "ACKS/S", right=True, cell=rate("acks_1m"), wide=True),
        Column("acks_5m", "ACKS/S-5M", right=True, cell=rate("acks_5m"), wide=True),
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
        Column("acks_1m", "ACKS/S", right=True, cell=rate("acks_1m")),
        Column("acks_5m", "ACKS/S-5M", right=True, cell=rate("acks_5m"), wide=True),
        Column("borrower_id", "BORROWER", wide=True),
    ),
    lambda item: str(item["borrower_id"]),
)


def group_item(group: "Group") -> Item:
    """A group as the renderer takes it."""
    backoff = ",".join(map(text_of_span, group.backoff_ms)) or None
    return item_of("Group", group, backoff=backoff)


def borrower_item(borrower: "Borrower") -> Item:
    """A member as the renderer takes it."""
    return item_of("Borrower", borrower)
