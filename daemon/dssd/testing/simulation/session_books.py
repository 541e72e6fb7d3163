"""What a session owes, kept beside it: what it must give back, end, or not send.

Invariant: it only takes notes and looks; nothing that a session does depends on it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dss_core.ids import StreamId
from dssd.core.borrower import UNSUBSCRIBE_MS
from dssd.core.delivering import Deliver
from dssd.core.holding import Timer
from dssd.core.membership import Lease
from dssd.core.messages import (
    BorrowerId,
    Invalidate,
    ProgressSaved,
    Revoke,
    Revoked,
    ToBorrower,
)
from dssd.subscriptions.agent import Agent
from dssd.testing.simulation.books import LATE_MS, check_blame
from dssd.testing.simulation.checker import Violation

if TYPE_CHECKING:
    from dssd.testing.simulation.leader_host import LeaderHost
    from dssd.testing.simulation.session_host import SimulatedSession

ROUNDING_US = 3_000
"""Two clocks of whole milliseconds, at any rate."""

NEVER_MS = 1 << 62


@dataclass(frozen=True, slots=True)
class HeldGrant:
    """A grant that a session holds."""

    agent: Agent
    borrower_id: BorrowerId
    stream: StreamId
    grant_epoch: int
    every: int
    unwatch: Callable[[], None]


class SessionBooks:
    """The notes on one session."""

    def __init__(self, session: "SimulatedSession") -> None:
        self.standings: dict[int, str] = {}
        """By subscription, as people would see it."""
        self.borrower_ids: set[BorrowerId] = set()
        """Every one that it ever had."""
        self.leaving: dict[int, int] = {}
        """Subscriptions that were left, and when they are over."""
        self._session = session
        self._finishing: dict[int, int] = {}
        """Grants that are to be given back, and when their final report is due."""
        self._suspended: set[int] = set()

    # Notes

    def asked_back(self, grant: int, deadline_ms: int) -> None:
        """The leader wants a grant back."""
        self._finishing[grant] = self._session.host.now_ms() + deadline_ms

    def reported_last(self, grant: int) -> None:
        """The final report of a grant was made."""
        self._finishing[grant] = NEVER_MS

    def left(self, subscription: int) -> None:
        """The client left a subscription."""
        self.leaving[subscription] = self._session.host.now_ms() + UNSUBSCRIBE_MS

    def over(self, subscription: int) -> None:
        """A subscription has ended."""
        self.leaving.pop(subscription, None)
        self.standings.pop(subscription, None)
        self._suspended.discard(subscription)

    def suspended(self, subscription: int) -> None:
        """Nothing may be delivered until `resumed`."""
        self._suspended.add(subscription)

    def resumed(self, subscription: int) -> None:
        """Delivery may go on."""
        self._suspended.discard(subscription)

    # Looks

    def delivered(self, group_id: int, stream: StreamId) -> list[int]:
        """The grant epochs under which records of the stream may go out now."""
        return [
            held.grant_epoch
            for number, held in self._session.grants.items()
            if held.stream == stream
            and held.agent.group.group_id == group_id
            and number not in self._finishing
            and held.agent.subscription not in self._suspended
        ]

    def held_besides(self, borrower_id: BorrowerId, message: ToBorrower) -> set[int]:
        """The grants of a borrower that a message about one stream must leave alone."""
        if not isinstance(message, Revoke | Revoked | Invalidate | ProgressSaved):
            return set()
        return {
            number
            for number, held in self._session.grants.items()
            if held.borrower_id == borrower_id and message.stream not in (None, held.stream)
        }

    def check_delivery(self, delivery: Deliver) -> None:
        """S4, S5, S10: what goes to the client may go, and no more of it than may be blamed.

        Raises:
            Violation: it may not.
        """
        check_blame(delivery, self._session.window.credit_records)
        grant = self._session.grants.get(delivery.grant)
        if delivery.grant in self._finishing:
            raise Violation("S5", f"delivered though it is to be given back: {delivery}")
        if grant is not None and grant.agent.subscription in self._suspended:
            raise Violation("S4", f"delivered though the leader is silent: {delivery}")

    def check_in_time(self) -> None:
        """I16, I22: what has to be over by a deadline is. Not for a host that stood still.

        Raises:
            Violation: a final report or the end of a subscription is late.
        """
        now_ms = self._session.host.now_ms() - LATE_MS
        for grant, until_ms in self._finishing.items():
            if until_ms < now_ms and grant in self._session.grants:
                raise Violation("I16", f"no final report of grant {grant} by its deadline")
        for subscription, until_ms in self.leaving.items():
            if until_ms < now_ms:
                raise Violation("I22", f"subscription {subscription} does not end")

    def check_leases(self, leaders: "LeaderHost") -> None:
        """S4: a borrower stops handing out before its leader gives it up, whatever clocks do.

        Raises:
            Violation: it may still hand out by then.
        """
        session = self._session
        for subscription in self.standings:
            agent = session.handler.agent(subscription)
            acting = leaders.leading.get(agent.group.group_id) if agent is not None else None
            if agent is None or acting is None or acting.leader is None:
                continue
            for borrower in agent.borrowers():
                stops_ms = borrower.timers.at_ms(Timer.SUSPEND)
                ends_ms = acting.leader.timers.at_ms(Lease(borrower.borrower_id))
                if borrower.suspended or stops_ms is None or ends_ms is None:
                    continue
                late_us = session.host.until_us(stops_ms) - leaders.host.until_us(ends_ms)
                if late_us > ROUNDING_US:
                    raise Violation("S4", f"{session.client_id} outlives its lease by {late_us} us")
