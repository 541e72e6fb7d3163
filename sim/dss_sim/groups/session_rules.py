"""What a session must give back, end, or not send, judged from notes on its acts.

Invariant: this only takes notes and looks; no session depends on it.
"""

from collections import defaultdict
from collections.abc import Callable, Container
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dss_core.ids import StreamId
from dss_core.lane import MAIN, grant_and_level
from dss_core.progress import Progress, Ranges, complement, normalised
from dss_sim.groups.borrower_rules import check_lease, check_limits
from dss_sim.groups.ledger import Ledger
from dss_sim.groups.log import SimulatedLog
from dss_sim.groups.machine_rules import LATE_MS, check_blame
from dss_sim.groups.redelivery_rules import RedeliveryRules
from dss_sim.groups.turn_rules import TurnRules
from dss_sim.groups.violation import Violation
from dssd.limits import REDELIVERY_MS, UNSUBSCRIBE_MS
from dssd.machines.attempts import Attempts, merged_attempts, unacked_attempts
from dssd.machines.delivery.events import Deliver, Settle
from dssd.machines.messages import (
    BorrowerId,
    GrantedStream,
    Invalidate,
    ProgressSaved,
    Revoke,
    Revoked,
    StreamReport,
    ToBorrower,
)
from dssd.queues.lane import Lane
from dssd.subscriptions.agent import Agent

if TYPE_CHECKING:
    from dss_sim.groups.leader_host import LeaderHost
    from dss_sim.groups.session_host import SimulatedSession

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
    lane: Lane | None = None


class SessionRules:
    """The notes on one session."""

    def __init__(self, session: "SimulatedSession") -> None:
        self.standings: dict[int, str] = {}
        """The state of each subscription, as people see it."""
        self.leaving: dict[int, int] = {}
        """Subscriptions that were left, and when they must be over."""
        self._session = session
        self._finishing: dict[int, int] = {}
        """Grants that are to be given back, and when their final report is due."""
        self._suspended: set[int] = set()
        self._paused: set[int] = set()
        self._confirmed: set[int] = set()
        """Grants whose undelivered records the client said it dropped."""
        self._acked: defaultdict[int, list[Ranges]] = defaultdict(list)
        """Acks of the client under each grant."""
        self._tokens: dict[int, tuple[HeldGrant, Progress]] = {}
        """Synchronous acks by token: all acks up to then."""

        self._counted: dict[int, Attempts] = {}
        """Hand-outs that deliveries mentioned."""
        self._again = RedeliveryRules()
        self.turns = TurnRules()

    # Notes

    def installed(self, grant: int, granted: GrantedStream, rest_ms: int = REDELIVERY_MS) -> None:
        """The window gets a grant; a record refused in place rests at least so long."""
        self._again.installed(grant, max(granted.frontier, granted.progress.floor), rest_ms)

    def asked_back(self, grant: int, deadline_ms: int) -> None:
        """The leader wants a grant back."""
        if self._finishing.get(grant) != NEVER_MS:
            self._finishing[grant] = self._session.host.now_ms() + deadline_ms

    def given_back(self, grant: int) -> None:
        """The client says that it hands out no more of a grant."""
        self._confirmed.add(grant)

    def settled(self, settles: tuple[Settle, ...]) -> None:
        """The client reports its progress."""
        for settle in settles:
            held = self._session.grants.get(settle.grant)
            if held is None:
                continue
            self._again.settled(settle, self._session.host.now_ms())
            self._acked[settle.grant].append(settle.acked)
            if settle.token:
                self._tokens[settle.token] = held, self._acknowledged(settle.grant)

    def _acknowledged(self, grant: int) -> Progress:
        acked = self._acked[grant]
        progress = Progress(0).with_acked(each for ranges in acked for each in ranges)
        self._acked[grant] = [((0, progress.floor), *progress.ranges)]
        return progress

    def reported(self, reports: tuple[tuple[int, StreamReport], ...]) -> None:
        """The window reports grants.

        Raises:
            Violation: it reports fewer hand-outs than it told the client, or leaves out acks.
        """
        for grant, report in reports:
            # Acks after a final report are refused.
            if grant in self._acked and self._finishing.get(grant) != NEVER_MS:
                acked = self._acknowledged(grant)
                kept = report.progress.with_acked(((0, acked.floor), *acked.ranges))
                if kept != report.progress:
                    raise Violation("A1", f"acknowledged were {acked}, but {report}")
            counted = self._counted.get(grant, ())
            said = unacked_attempts(report.attempts, report.progress)
            if merged_attempts(said, counted, report.progress) != said:
                raise Violation("S10", f"hand-outs were not reported: {counted}, but {report}")

    def reported_last(self, grant: int, report: StreamReport) -> None:
        """The final report of a grant was made.

        Raises:
            Violation: it says more than the client did.
        """
        self._finishing[grant] = NEVER_MS
        if report.sent is None and grant not in self._confirmed:
            raise Violation("S4", f"the client may hand out more than that: {report}")

    def dropped(self, grant: int, reason: str) -> None:
        """A grant is over.

        Raises:
            Violation: its subscription was left, and records in flight were not waited for.
        """
        if reason == "unsubscribed" and self._finishing.get(grant) != NEVER_MS:
            raise Violation("I5", f"grant {grant} was left without a final report")
        self._acked.pop(grant, None)
        self._counted.pop(grant, None)
        self._again.dropped(grant)

    def left(self, subscription: int) -> None:
        """The client left a subscription."""
        self.leaving[subscription] = self._session.host.now_ms() + UNSUBSCRIBE_MS

    def over(self, subscription: int) -> None:
        """A subscription has ended."""
        self.leaving.pop(subscription, None)
        self.standings.pop(subscription, None)
        self._suspended.discard(subscription)
        self._paused.discard(subscription)

    def set_paused(self, subscription: int, *, paused: bool) -> None:
        """Nothing may be delivered while its group is paused, whatever its leader does besides."""
        if paused:
            self._paused.add(subscription)
        else:
            self._paused.discard(subscription)

    def suspended(self, subscription: int) -> None:
        """Nothing may be delivered until `resumed`."""
        self._suspended.add(subscription)

    def resumed(self, subscription: int) -> None:
        """Delivery may go on."""
        self._suspended.discard(subscription)

    # Looks

    def delivered(self, group_id: int, stream: StreamId) -> list[int]:
        """The grant epochs under which records of the stream may be sent now."""
        return [
            held.grant_epoch
            for number, held in self._session.grants.items()
            if held.stream == stream
            and held.agent.group.group_id == group_id
            and number not in self._finishing
            and held.agent.subscription not in self._suspended
        ]

    def consumed(self, stream: StreamId) -> int:
        """The offset below which all records are acknowledged under every held grant."""
        lents = self._session.window.streams()
        return min(
            (lent.records.progress.floor for lent in lents if lent.stream == stream), default=0
        )

    def held_besides(self, borrower_id: BorrowerId, message: ToBorrower) -> set[int]:
        """The grants of a borrower that a message about another grant must not change."""
        if not isinstance(message, Revoke | Revoked | Invalidate | ProgressSaved):
            return set()
        return {
            number
            for number, held in self._session.grants.items()
            if held.borrower_id == borrower_id
            and message.stream is not None
            and (message.stream != held.stream or message.grant_epoch < held.grant_epoch)
        }

    def check_delivery(self, delivery: Deliver) -> None:
        """S4, S5, S10: records that are sent may be sent, and no more together than may be blamed.

        Raises:
            Violation: it may not.
        """
        check_blame(delivery, self._session.window.credit.records)
        if delivery.attempt > 2:
            # A single hand-out is reported by the frontier alone.
            records = complement(normalised(delivery.mask), delivery.base, delivery.end)
            told = tuple((low, high, delivery.attempt - 1) for low, high in records)
            counted = self._counted.get(delivery.grant, ())
            self._counted[delivery.grant] = merged_attempts(counted, told, Progress(0))
        lent, level = grant_and_level(delivery.grant)
        grant = self._session.grants.get(lent)
        if grant is not None and level == MAIN:
            wait_ms = grant.agent.group.ack_wait_ms
            self._again.check(delivery, self._session.host.now_ms(), wait_ms)
        if lent in self._finishing:
            raise Violation("S5", f"delivered though it is to be given back: {delivery}")
        if grant is not None and grant.agent.subscription in self._suspended:
            raise Violation("S4", f"delivered though the leader is silent: {delivery}")
        if grant is not None and grant.agent.subscription in self._paused:
            raise Violation("P1", f"delivered though the group is paused: {delivery}")

    def check_turns(self) -> None:
        """S12: no subscription waits for what others hold. Not judged on a host that was frozen.

        Raises:
            Violation: one does.
        """
        silent = self._suspended | self._paused
        self.turns.check(self._session.window, silent, self._session.host.now_ms())

    def check_answered(self, token: int, ledger: Ledger) -> None:
        """A1, S2: an ack is called durable once it is, with all that was acknowledged before it.

        Raises:
            Violation: it is not.
        """
        waiting = self._tokens.pop(token, None)
        if waiting is not None:
            held, acked = waiting
            ledger.check_kept(held.agent.group.group_id, held.stream, acked, held.grant_epoch)

    def check_in_time(self) -> None:
        """I16, I22: everything with a deadline ends by it. Not judged on a host that was frozen.

        Raises:
            Violation: a final report or the end of a subscription is late.
        """
        now_ms = self._session.host.now_ms() - LATE_MS
        wake_ms = self._session.window.wake_at_ms
        for grant, until_ms in self._finishing.items():
            if until_ms == NEVER_MS or grant not in self._session.grants:
                continue
            if until_ms < now_ms or wake_ms is None or wake_ms > until_ms:
                raise Violation("I16", f"no final report of grant {grant} by its deadline")
        for subscription, until_ms in self.leaving.items():
            if until_ms < now_ms:
                raise Violation("I22", f"subscription {subscription} does not end")

    def check_read_on(self, log: SimulatedLog, growing: Container[int]) -> None:
        """L2: the records of a stream are read, unless the news of them is on its way.

        Raises:
            Violation: the window believes that it has read all.
        """
        for lent in self._session.window.streams():
            rests = lent.at_tail and not lent.records.ending and lent.grant not in growing
            if rests and lent.stream in log and lent.cursor < log.bounds(lent.stream).end:
                raise Violation("L2", f"{lent.stream} has more than {lent.cursor} and rests")

    def check_borrowers(self, leaders: "LeaderHost") -> None:
        """S4, I22: look at the clocks of every borrower.

        Raises:
            Violation: one may hand out for too long, or leaves without an end.
        """
        session = self._session
        for subscription in self.standings:
            agent = session.handler.agent(subscription)
            if agent is None:
                continue
            acting = leaders.leading.get(agent.group.group_id)
            leader = acting.leader if acting is not None else None
            borrowers = list(agent.borrowers())
            if agent.leaving and not borrowers:
                raise Violation("I22", f"subscription {subscription} was left, and nobody ends it")
            for borrower in borrowers:
                if borrower.suspended != (subscription in self._suspended):
                    raise Violation("S4", f"{session.client_id} was not told of its silent leader")
                if borrower.pause.paused and subscription not in self._paused:
                    raise Violation("P1", f"{session.client_id} was not told of a pause")
                check_limits(borrower)
                if leader is not None:
                    check_lease(borrower, session.host, leader, leaders.host)
