"""Rules for a session's borrowers, from what they were told and what they said, step by step.

Each rule is judged on the step that breaks it, because another line of defence often hides the
consequence. Invariant: this only takes notes and looks; no borrower depends on it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from dss_core.ids import StreamId
from dss_core.progress import Progress
from dss_sim.groups.schedule import Host
from dss_sim.groups.violation import Violation
from dssd.machines.borrower.state import SERVED, Borrower, BorrowerState, LeaseBorrower, Timer
from dssd.machines.leader.state import Leader, MemberLease
from dssd.machines.messages import (
    BorrowerId,
    Disconnect,
    Grant,
    GrantedStream,
    LeaderConnectResponse,
    LeaderWanted,
    LeaseStreams,
    PingResponse,
    ProgressSaved,
    RenewStreamLease,
    Revoke,
    Revoked,
    RevokeFinished,
    StreamReport,
    ToBorrower,
    ToLeader,
    UpdateProgress,
    UpdateStreams,
    UpdateStreamStates,
)

ROUNDING_US = 3_000
"""The rounding of two clocks of whole milliseconds."""

RESETS_MAX = 2
"""How often a borrower may begin after heal; its connection may make it begin once more."""

Machine = Borrower | LeaseBorrower
GrantOf = tuple[BorrowerId, StreamId, int]

UNJUDGED = (PingResponse, LeaderConnectResponse, RenewStreamLease)
"""Messages of the present leader without a rule."""


class Hearing(NamedTuple):
    """The state of a borrower before it gets a message."""

    machine: Machine
    message: ToBorrower
    served: bool
    leaving: bool
    leader_epoch: int
    lease_ends_ms: int | None
    held: dict[StreamId, int]
    """The grant epochs of its streams."""


class BorrowerRules:
    """The notes on all borrowers of a session, living and gone."""

    def __init__(self) -> None:
        self._heard: ToBorrower | None = None
        self._said: list[ToLeader] = []
        """What it said since the last message that it got."""
        self._over: dict[tuple[BorrowerId, StreamId], int] = {}
        """The newest grant epoch that ended."""
        self._last: dict[GrantOf, StreamReport] = {}
        """Final reports that were made."""
        self._saved: dict[GrantOf, Progress] = {}
        """Progress that borrowers were told is durable."""

    # Notes

    def installed(self, borrower_id: BorrowerId, granted: GrantedStream) -> None:
        """A borrower takes a grant.

        Raises:
            Violation: that grant, or a newer one, has ended.
        """
        stream, epoch = granted.stream, granted.grant_epoch
        if epoch <= self._over.get((borrower_id, stream), 0):
            raise Violation("S4", f"a grant that was over is back: {granted}")
        self._saved[borrower_id, stream, epoch] = granted.progress

    def dropped(self, borrower_id: BorrowerId, stream: StreamId, grant_epoch: int) -> None:
        """A borrower no longer holds a grant."""
        newest = self._over.get((borrower_id, stream), 0)
        self._over[borrower_id, stream] = max(newest, grant_epoch)

    def saved(self, progress: Progress) -> None:
        """The session is told that some progress is durable.

        Raises:
            Violation: the leader did not say so of all of it.
        """
        said = self._heard.progress if isinstance(self._heard, ProgressSaved | Revoked) else None
        if said is not None and said.merged(progress) != said:
            raise Violation("S2", f"called durable: {progress}, the leader said {said}")

    def reported_last(self, borrower_id: BorrowerId, report: StreamReport) -> None:
        """The session makes the final report of a grant."""
        self._last[borrower_id, report.stream, report.grant_epoch] = report

    def closing(self) -> None:
        """The client is gone, so every grant is reported once more, as it stands."""
        self._last.clear()

    def said(self, message: ToLeader) -> None:
        """A borrower sends a message.

        Raises:
            Violation: it says less than its session reported.
        """
        self._said.append(message)
        if self._last:
            for report, final in reports_in(message):
                grant = message.borrower_id, report.stream, report.grant_epoch
                last = self._last.get(grant)
                if last is not None:
                    check_last(last, report, final=final)

    # Messages

    def about_to_hear(self, machine: Machine, message: ToBorrower) -> Hearing | None:
        """A message has come; None if there is nothing to compare."""
        self._heard = message
        self._said.clear()
        if isinstance(message, UNJUDGED) and message.leader_epoch == machine.leader_epoch:
            return None
        return Hearing(
            machine,
            message,
            machine.state in SERVED,
            machine.state is BorrowerState.UNSUBSCRIBING,
            machine.leader_epoch,
            machine.timers.at_ms(Timer.LEASE),
            {stream: held.report.grant_epoch for stream, held in machine.streams.items()},
        )

    def check_heard(self, hearing: Hearing) -> None:
        """Judge what a borrower did with a message.

        Raises:
            Violation: it did something forbidden, or left out something required.
        """
        message = hearing.message
        if message.leader_epoch < hearing.leader_epoch:
            check_ignored(hearing, self._said)
            return
        if message.leader_epoch > hearing.leader_epoch > 0 and hearing.served:
            check_presented(hearing, self._said)
        if isinstance(message, Revoke | Revoked):
            check_released(hearing, message, self._said)
        elif isinstance(message, Grant | LeaseStreams | UpdateStreams):
            check_declined(hearing, message.streams, self._said)
        elif isinstance(message, ProgressSaved):
            self._note_saved(hearing.machine, message)

    def check_left(self, machines: Iterable[Machine]) -> None:
        """L1: a borrower that leaves says so at once, so that nothing more comes to it.

        Raises:
            Violation: it does not.
        """
        told = {each.borrower_id for each in self._said if says_leaving(each)}
        for machine in machines:
            if machine.state is BorrowerState.UNSUBSCRIBING and machine.borrower_id not in told:
                raise Violation("L1", f"{machine.client_id} leaves and does not say so")

    def _note_saved(self, machine: Machine, message: ProgressSaved) -> None:
        grant = machine.borrower_id, message.stream, message.grant_epoch
        saved = self._saved.get(grant)
        if saved is not None:
            saved = self._saved[grant] = saved.merged(message.progress)
            check_repeated_until_saved(machine, message, saved)


class Incarnations:
    """How often the borrowers of each client begin, after heal."""

    def __init__(self, groups: int) -> None:
        self._most = (1 + RESETS_MAX) * groups
        self._begun: Counter[str] = Counter()

    def began(self, client_id: str) -> None:
        """A borrower of the client begins.

        Raises:
            Violation: L4, that was once too often.
        """
        self._begun[client_id] += 1
        if self._begun[client_id] > self._most:
            raise Violation("L4", f"the borrowers of {client_id} begin again and again")


def reports_in(message: ToLeader) -> Iterator[tuple[StreamReport, bool]]:
    """The reports in a message, and whether each may stand where a final one was made."""
    match message:
        case LeaderWanted(held=reports) | Disconnect(reports=reports):
            yield from ((report, True) for report in reports)
        case UpdateProgress(reports=reports, final=final):
            yield from ((report, final) for report in reports)
        case UpdateStreamStates(states=states, taken_over=taken_over):
            yield from ((report, False) for report in states)
            yield from ((taken.report, taken.final) for taken in taken_over)
        case _:
            return


def check_last(last: StreamReport, said: StreamReport, *, final: bool) -> None:
    """S4, I11: a final report reaches the leader as one, with all that it says, however often.

    Raises:
        Violation: it does not.
    """
    if not final:
        raise Violation("I11", f"after the final report an ordinary one: {said}")
    whole = said.progress.merged(last.progress) == said.progress and said.frontier >= last.frontier
    if not whole or (said.sent is not None and said.sent < (last.sent or 0)):
        raise Violation("S4", f"the final report was {last}, the leader is told {said}")


def check_ignored(hearing: Hearing, said: list[ToLeader]) -> None:
    """S3: a message of an earlier leader changes nothing.

    Raises:
        Violation: it does.
    """
    machine = hearing.machine
    held = {stream: held.report.grant_epoch for stream, held in machine.streams.items()}
    kept = held == hearing.held and machine.timers.at_ms(Timer.LEASE) == hearing.lease_ends_ms
    if said or not kept:
        raise Violation("S3", f"a leader of before was obeyed: {hearing.message}")


def check_presented(hearing: Hearing, said: list[ToLeader]) -> None:
    """I11: a borrower that hears of a new leader presents to it what it holds, at once.

    Raises:
        Violation: it does not.
    """
    wanted = (each for each in said if isinstance(each, LeaderWanted))
    if not any(hearing.held.keys() <= {report.stream for report in each.held} for each in wanted):
        raise Violation("I11", f"a new leader is not told what is held: {hearing.message}")


def check_released(hearing: Hearing, message: Revoke | Revoked, said: list[ToLeader]) -> None:
    """I11: `Revoked` is answered in every state, and so is a `Revoke` of a stream that is not held.

    Raises:
        Violation: it is not.
    """
    if isinstance(message, Revoke):
        holds = hearing.held.get(message.stream) == message.grant_epoch
        if holds or isinstance(hearing.machine, LeaseBorrower):
            return
    grant = message.stream, message.grant_epoch
    released = (each for each in said if isinstance(each, RevokeFinished))
    if not any((each.stream, each.grant_epoch) == grant for each in released):
        raise Violation("I11", f"it is not said that the stream is dropped: {message}")


def says_leaving(message: ToLeader) -> bool:
    """Whether the message says that its borrower takes nothing more."""
    return isinstance(message, UpdateProgress | UpdateStreamStates) and message.leaving


def check_declined(
    hearing: Hearing, streams: Iterable[GrantedStream], said: Iterable[ToLeader]
) -> None:
    """L1: a borrower that leaves gives back at once what it is granted.

    Raises:
        Violation: its leader waits for it.
    """
    if not hearing.leaving or hearing.machine.state is not BorrowerState.UNSUBSCRIBING:
        return
    answered = {
        (each.stream, each.grant_epoch) for each in said if isinstance(each, RevokeFinished)
    }
    reports = [report for each in said for report in reports_in(each)]
    answered |= {(report.stream, report.grant_epoch) for report, final in reports if final}
    for granted in streams:
        known = hearing.held.get(granted.stream, 0)
        if granted.grant_epoch > known and (granted.stream, granted.grant_epoch) not in answered:
            raise Violation("L1", f"{hearing.machine.client_id} leaves and keeps {granted}")


def check_repeated_until_saved(machine: Machine, message: ProgressSaved, saved: Progress) -> None:
    """I11: a report that is not durable yet is to be sent again.

    Raises:
        Violation: it is not.
    """
    held = machine.streams.get(message.stream)
    if held is None or held.report.grant_epoch != message.grant_epoch:
        return
    if saved.merged(held.report.progress) != saved and machine.timers.at_ms(message.stream) is None:
        raise Violation("I11", f"a report is not sent again: {held.report}, saved {saved}")


# Their clocks


def check_limits(machine: Machine) -> None:
    """S4, I22: no borrower lives without a lease, or takes forever to leave.

    Raises:
        Violation: one does.
    """
    leaves = machine.state is BorrowerState.UNSUBSCRIBING
    if (leaves or machine.state in SERVED) and machine.timers.at_ms(Timer.LEASE) is None:
        raise Violation("S4", f"{machine.client_id} is {machine.state.value} without a lease")
    if leaves and machine.timers.at_ms(Timer.UNSUBSCRIBE) is None:
        raise Violation("I22", f"{machine.client_id} leaves without an end")


def check_lease(machine: Machine, host: Host, leader: Leader, leaders: Host) -> None:
    """S4: a borrower stops handing out before its leader gives it up, whatever clocks do.

    Its lease runs from when it sent what its leader has heard.

    Raises:
        Violation: it may still hand out by then, or counts its lease from a later time.
    """
    ends_ms = leader.timers.at_ms(MemberLease(machine.borrower_id))
    lease_ms = machine.timers.at_ms(Timer.LEASE)
    if ends_ms is None or lease_ms is None:
        return
    stops_ms = machine.timers.at_ms(Timer.SUSPEND)
    if machine.suspended or stops_ms is None:
        return
    heard_us = leaders.since_us(ends_ms - leader.timing.lease_ms)
    if host.since_us(lease_ms - machine.lease_ms) < heard_us - ROUNDING_US:
        raise Violation("S4", f"the lease of {machine.client_id} runs from too late a time")
    late_us = host.until_us(stops_ms) - leaders.until_us(ends_ms)
    if late_us > ROUNDING_US:
        raise Violation("S4", f"{machine.client_id} outlives its lease by {late_us} us")
