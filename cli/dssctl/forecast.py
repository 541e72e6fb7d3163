"""When a group's lag will be gone, as lists, pages, the doctor and the dashboard show it."""

from math import inf
from typing import TYPE_CHECKING

from dss_core.forecast import drained_in_ms
from dss_core.times import text_of_span

if TYPE_CHECKING:
    from dss_client import Group


def forecast_ms(group: "Group", now_us: int) -> float | None:
    """How long until its lag is gone; infinite if it grows, None if nobody can say."""
    at_us, arrivals, acks = group.oldest_unacked_us, group.arrivals, group.acks
    return drained_in_ms(
        group.lag,
        group.drain_ms,
        None if at_us is None else (now_us - at_us) / 1_000,
        (arrivals.minute, arrivals.five_minutes),
        (acks.minute, acks.five_minutes),
    )


def forecast_text(drained_ms: float | None) -> str:
    """A forecast in a cell."""
    if not drained_ms:
        return "-"
    return "never" if drained_ms == inf else text_of_span(int(drained_ms) // 1_000 * 1_000)
