"""Each subscription of a session with work gets some of it done, whatever the user takes of others.

    S12 one that has something to send has no less out than its share
    S12 one that has records to read, and less out than its share, is read for within a second

Invariant: this takes notes of read results, and looks; no machine depends on it.
"""

from collections.abc import Collection

from dss_sim.groups.violation import Violation
from dssd.limits import OUT_BYTES_MAX
from dssd.machines.delivery.credit import AGAIN_PART, RESERVED_PART
from dssd.machines.delivery.stream import DeliveredStream
from dssd.machines.delivery.window import DeliveryWindow

TURN_MS_MAX = 1_000
"""How long a subscription may wait: a read takes 2 ms, and the streams of a session take turns
within a tenth of this."""


class TurnRules:
    """The notes on one session."""

    def __init__(self) -> None:
        self._since_ms: dict[int, int] = {}
        """Waiting subscriptions, and since when nothing was read for them."""

    def read(self, subscription: int) -> None:
        """A read for the subscription was answered."""
        self._since_ms.pop(subscription, None)

    def stood_still(self) -> None:
        """The host was frozen: nothing could be read."""
        self._since_ms.clear()

    def check(self, window: DeliveryWindow, suspended: Collection[int], now_ms: int) -> None:
        """S12: look at waiting subscriptions.

        Raises:
            Violation: one has waited for too long.
        """
        waiting = {lent.subscription for lent in window.streams() if _has_work(lent)}
        waiting -= set(suspended)
        if window.credit.out_bytes >= OUT_BYTES_MAX:
            waiting.clear()
        for subscription in list(self._since_ms):
            if subscription not in waiting:
                del self._since_ms[subscription]
        for subscription in waiting:
            if _out_below_share(window, subscription) is None:
                self._since_ms.pop(subscription, None)
            elif now_ms - self._since_ms.setdefault(subscription, now_ms) > TURN_MS_MAX:
                since_ms = self._since_ms[subscription]
                raise Violation("S12", f"subscription {subscription} waits since {since_ms} ms")


def check_shares(window: DeliveryWindow) -> None:
    """S12: no subscription has something to send while it has less out than its own share.

    Raises:
        Violation: one waits for what others hold.
    """
    if window.credit.out_bytes >= OUT_BYTES_MAX:
        return
    for subscription in {each.subscription for each in window.streams() if each.chunk is not None}:
        outs = _out_below_share(window, subscription)
        if outs is not None:
            raise Violation("S12", f"subscription {subscription} waits with {outs} out")


def _out_below_share(window: DeliveryWindow, subscription: int) -> list[int] | None:
    """How many records and bytes it has out, if both are less than its share; else None."""
    credit, lents = window.credit, list(window.streams())
    count = len({lent.subscription for lent in lents})
    own = [lent for lent in lents if lent.subscription == subscription]
    refused = any(len(lent.records.resting) for lent in own)
    sums = (
        (credit.records, sum(lent.records.out.records for lent in own)),
        (credit.bytes, sum(lent.records.out.bytes for lent in own)),
    )
    kept = [each // (AGAIN_PART * count) if refused else 0 for each, _ in sums]
    shares = [max(1, each // (RESERVED_PART * count)) for each, _ in sums]
    outs = [out for _, out in sums]
    below = all(out < share - no for out, share, no in zip(outs, shares, kept, strict=True))
    return outs if below else None


def _has_work(lent: DeliveredStream) -> bool:
    """Whether the stream could be read now, by its own state."""
    if lent.records.ending or lent.trouble.again_ms is not None or lent.reading or lent.is_shut:
        return False
    if lent.records.resting.due_ranges:
        return True
    return not (lent.at_tail or lent.capped() or lent.records.out.suspects)
