"""Redelivery within one session: a record comes again only after the wait that its user had.

A record comes again under the same grant because it was refused, and then rests first, or because
its ack wait ran out. Invariant: this takes notes of what the client said, on the session's clock,
and looks at what is delivered. Redelivery across grants is judged elsewhere.
"""

from collections import defaultdict

from dss_core.progress import clipped, complement, normalised
from dss_sim.groups.violation import Violation
from dssd.machines.delivery.events import Deliver, Settle


class RedeliveryRules:
    """The notes on all grants of a session."""

    def __init__(self) -> None:
        self._frontiers: dict[int, int] = {}
        self._rest_ms: dict[int, int] = {}
        self._since_ms: defaultdict[int, dict[int, int]] = defaultdict(dict)
        """When each hand-out was reported, by grant and offset."""
        self._rests_until_ms: defaultdict[int, dict[int, int]] = defaultdict(dict)

    def installed(self, grant: int, frontier: int, rest_ms: int) -> None:
        """A grant begins; records below the frontier were handed out under earlier ones.

        Refused records rest at least so long.
        """
        self._frontiers[grant] = frontier
        self._rest_ms[grant] = rest_ms

    def dropped(self, grant: int) -> None:
        """A grant is over."""
        for notes in (self._frontiers, self._rest_ms, self._since_ms, self._rests_until_ms):
            notes.pop(grant, None)

    def settled(self, settle: Settle, now_ms: int) -> None:
        """The client reports its progress."""
        grant = settle.grant
        if grant not in self._frontiers:
            return
        fresh = (self._frontiers[grant], settle.frontier)
        for start, end in (fresh, *settle.in_progress, *settle.handed_out):
            self._since_ms[grant].update((offset, now_ms) for offset in range(start, end))
        self._frontiers[grant] = max(fresh)
        for nak in settle.naks:
            until_ms = now_ms + (self._rest_ms[grant] if nak.delay_ms is None else nak.delay_ms)
            rests = self._rests_until_ms[grant]
            rests.update((offset, until_ms) for offset in range(nak.start, nak.end))

    def check(self, delivery: Deliver, now_ms: int, ack_wait_ms: int) -> None:
        """S10: a redelivered record has rested, or its user had the whole ack wait.

        Raises:
            Violation: it comes too soon.
        """
        since, rests = self._since_ms[delivery.grant], self._rests_until_ms[delivery.grant]
        if not since:
            return
        masked = clipped(normalised(delivery.mask), delivery.base, delivery.end)
        for part in complement(masked, delivery.base, delivery.end):
            for offset in range(*part):
                begun_ms, until_ms = since.pop(offset, None), rests.pop(offset, None)
                if begun_ms is None:
                    continue
                if until_ms is None and now_ms < begun_ms + ack_wait_ms:
                    raise Violation("S10", f"{offset} comes again within its ack wait: {delivery}")
                if until_ms is not None and now_ms < until_ms:
                    raise Violation("S10", f"{offset} was refused and did not rest: {delivery}")
