"""Groups, and their leaders."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, NamedTuple

from dss_core.times import text_of_span
from dssctl.forecast import forecast_ms, forecast_text
from dssctl.output.escape import escaped
from dssctl.top.lists.listing import Column, Listing, Pen, Scene
from dssctl.top.model.places import Ordering, Place
from dssctl.top.model.standing import STUCK, look_of, word_of
from dssctl.top.model.trends import Trend, change, direction
from dssctl.top.paint import amounts
from dssctl.top.paint.charts import bars
from dssctl.top.paint.spans import Look

if TYPE_CHECKING:
    from dss_client import Group, Rates, Stuck

TREND_WIDTH = 12


class GroupRow(NamedTuple):
    """A group, and the trend of its lag."""

    key: str
    group: "Group"
    trend: Trend
    drained_ms: float | None = None
    """Time until the lag is gone; infinite: never, None: unknown."""
    stuck: "tuple[Stuck, ...]" = ()
    """Its stuck streams."""

    @property
    def state(self) -> str:
        """The state in a word."""
        return word_of(self.group)

    @property
    def reason(self) -> str:
        """The reason for the state, if it is known."""
        if self.state != STUCK or not self.stuck:
            return self.group.state_reason
        first = self.stuck[0]
        return ": ".join(filter(None, (first.stream, first.reason.sentence)))


def group_rows(scene: Scene) -> Mapping[str, GroupRow]:
    """All groups."""
    trends, now_us = scene.picture.trends, scene.pen.now_ms * 1_000
    stuck: dict[str, tuple[Stuck, ...]] = {}
    for each in scene.picture.stuck:
        stuck[each.group] = (*stuck.get(each.group, ()), each)
    return {
        key: GroupRow(
            key, group, trends.get(key, ()), forecast_ms(group, now_us), stuck.get(key, ())
        )
        for key, group in scene.picture.items.groups.items()
    }


def is_faulty(row: GroupRow) -> bool:
    """Whether an operator should look."""
    return row.group.health != "healthy"


def state_look(row: GroupRow) -> Look:
    """The look of its state."""
    return look_of(row.group)


def lag_text(group: "Group", trend: Trend, pen: Pen) -> str:
    """The lag, and whether it rises or falls."""
    glyphs = pen.glyphs
    sign = {1: glyphs.up, 0: glyphs.level, -1: glyphs.down}[direction(trend)]
    return amounts.bounded(group.lag, exact=group.lag_exact) + sign


def lags_of(trend: Trend) -> list[float]:
    """The lags of a trend."""
    return [float(sample.lag) for sample in trend]


def _oldest_ms(group: "Group") -> int | None:
    oldest_us = group.oldest_unacked_us
    return None if oldest_us is None else oldest_us // 1_000


def _opened(_place: Place, key: str, _row: GroupRow) -> Place:
    return Place("group", group=key)


def _both(rates: "Rates") -> str:
    """Rates over a minute, and over five."""
    return f"{amounts.rate(rates.minute)}/s, over 5 min {amounts.rate(rates.five_minutes)}/s"


def _facts(row: GroupRow, pen: Pen) -> Sequence[tuple[str, str]]:
    group = row.group
    done = [(part.name, getattr(group.fates, part.name)) for part in fields(group.fates)]
    paused = (
        "until resumed"
        if group.paused_until_ms is None
        else (f"until {amounts.moment(group.paused_until_ms)}")
    )
    return [
        ("group", escaped(group.name)),
        ("filter", escaped(group.filter)),
        ("state", ": ".join(filter(None, (row.state, escaped(row.reason))))),
        ("paused", paused if group.paused else "no"),
        ("members", f"{group.borrowers}, {group.standby} of them standing by"),
        ("streams", str(group.streams)),
        ("lag", amounts.bounded(group.lag, exact=group.lag_exact)),
        ("oldest", amounts.age(_oldest_ms(group), pen.now_ms)),
        ("failed", f"{group.retrying} come again, {group.dead} dead"),
        ("arriving", _both(group.arrivals)),
        ("acked", _both(group.acks)),
        ("drained in", forecast_text(row.drained_ms)),
        ("done with", ", ".join(f"{count} {fate}" for fate, count in done if count) or "nothing"),
        ("kind", f"{group.kind}, {group.protocol}, on damage {group.on_damage}"),
        ("start", escaped(group.start)),
        ("ack wait", text_of_span(group.ack_wait_ms)),
        ("leader epoch", str(group.leader_epoch)),
        ("revision", str(group.revision)),
        ("created", amounts.moment(group.created_at_ms)),
    ]  # fmt: skip


GROUPS: Listing[GroupRow] = Listing(
    title="Groups",
    columns=(
        Column("name", "GROUP", 14, lambda row: row.group.name, grows=True, rises=True),
        Column("filter", "FILTER", 14, lambda row: row.group.filter, rank=6, rises=True),
        Column("state", "STATE", 11, lambda row: row.state, look=state_look, rises=True),
        Column("members", "MEM", 4, lambda row: row.group.borrowers, right=True,
            look=lambda row: "warn" if row.group.lag and not row.group.borrowers else ""),
        Column("streams", "STR", 4, lambda row: row.group.streams, right=True, rank=3),
        Column("in", "IN/S", 6, lambda row: row.group.arrivals.minute,
            lambda row, _pen: amounts.rate(row.group.arrivals.minute), right=True, rank=4),
        Column("acked", "ACK/S", 6, lambda row: row.group.acks.minute,
            lambda row, _pen: amounts.rate(row.group.acks.minute), right=True, rank=4),
        Column("lag", "LAG", 9, lambda row: row.group.lag,
            lambda row, pen: lag_text(row.group, row.trend, pen), right=True,
            look=lambda row: "warn" if row.group.lag and direction(row.trend) > 0 else ""),
        Column("change", "+/- 1m", 7, lambda row: change(row.trend),
            lambda row, _pen: amounts.change(change(row.trend)), right=True, rank=3,
            look=lambda row: "warn" if change(row.trend) > 0 else "dim"),
        Column("retrying", "RETRY", 6, lambda row: row.group.retrying, right=True, rank=7,
            look=lambda row: "warn" if row.group.retrying else "dim"),
        Column("dead", "DEAD", 5, lambda row: row.group.dead, right=True, rank=1,
            look=lambda row: "warn" if row.group.dead else "dim"),
        Column("drain", "DRAIN", 7, lambda row: row.drained_ms or None,
            lambda row, _pen: forecast_text(row.drained_ms), right=True, rank=5),
        Column("trend", "TREND 2m", TREND_WIDTH, lambda row: direction(row.trend),
            lambda row, pen: bars(lags_of(row.trend), TREND_WIDTH, pen.glyphs), rank=2),
        Column("oldest", "OLDEST", 7,
            lambda row: -row.group.oldest_unacked_us if row.group.oldest_unacked_us else None,
            lambda row, pen: amounts.age(_oldest_ms(row.group), pen.now_ms), right=True, rank=1),
    ),
    rows=group_rows,
    order=Ordering("lag"),
    opens=_opened,
    fault=is_faulty,
    facts=_facts,
    empty="no group yet: dssctl groups create NAME@FILTER",
)  # fmt: skip

LEADERS: Listing[GroupRow] = Listing(
    title="Leaders",
    columns=(
        Column("name", "GROUP", 16, lambda row: row.group.name, grows=True, rises=True),
        Column("filter", "FILTER", 14, lambda row: row.group.filter, rank=2, rises=True),
        Column("epoch", "EPOCH", 6, lambda row: row.group.leader_epoch,
            lambda row, _pen: str(row.group.leader_epoch or "-"), right=True),
        Column("state", "STATE", 11, lambda row: row.state, look=state_look, rises=True),
        Column("protocol", "PROTOCOL", 8, lambda row: row.group.protocol, rank=1, rises=True),
        Column("members", "MEM", 4, lambda row: row.group.borrowers, right=True),
        Column("streams", "STR", 5, lambda row: row.group.streams, right=True),
        Column("revision", "REV", 5, lambda row: row.group.revision,
            lambda row, _pen: str(row.group.revision), right=True, rank=1),
        Column("reason", "REASON", 16, lambda row: row.reason, grows=True, rank=3, rises=True),
    ),
    rows=lambda scene: {
        key: row for key, row in group_rows(scene).items() if row.group.leader_epoch
    },
    order=Ordering("name", descending=False),
    opens=_opened,
    fault=is_faulty,
    facts=_facts,
    empty="no group has had a leader yet",
)  # fmt: skip
