"""Cells that the columns of several nouns share: lags and rates, as a person reads them."""

from dssctl.output import Cell, Instant, Item

RATES_AFTER_S = 6.0
"""How old a group must be before its rates are shown: the daemon measures every 5 s, and before the
first measurement a rate of 0 would stand beside thousands of records."""


REASON_STYLES = {
    **dict.fromkeys(("unreadable", "damage-ahead", "capped", "dead"), "bold red"),
    **dict.fromkeys(("no-members", "paused", "free", "closed", "rehoming", "retrying"), "yellow"),
}
HEALTH_STYLES = {"healthy": "bold green", "attention": "bold yellow", "problem": "bold red"}


def shown_lag(item: Item, _now_us: int) -> str:
    """The lag, of a group or in a stream; marked if it is an upper bound."""
    return f"{item['lag']}" if item["lag_exact"] else f"<={item['lag']}"


def rate(field: str) -> Cell:
    """A cell for records a second."""

    def cell(item: Item, now_us: int) -> str:
        value = item[field]
        assert isinstance(value, float)
        if is_unmeasured(item, now_us):
            return "-"
        return f"{value:.0f}" if value >= 10 else f"{value:.1f}"

    return cell


def is_unmeasured(item: Item, now_us: int) -> bool:
    """Whether the item is so young that the daemon may not have measured it yet."""
    created = item.get("created_at", item.get("connected_at"))
    return isinstance(created, Instant) and now_us - created.us < RATES_AFTER_S * 1_000_000
