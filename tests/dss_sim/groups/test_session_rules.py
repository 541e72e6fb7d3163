"""For each rule the shortest thing that a session may do to break it, in a session of a world."""

from dataclasses import replace
from functools import partial
from typing import NamedTuple

import pytest

from dss_core.ids import StreamId
from dss_core.progress import Progress
from dss_sim.groups.ledger import Ledger
from dss_sim.groups.plan import plan_of
from dss_sim.groups.queue_plans import without_queues
from dss_sim.groups.session_host import SimulatedSession
from dss_sim.groups.session_rules import HeldGrant, SessionRules
from dss_sim.groups.timed_events import happen
from dss_sim.groups.turn_rules import check_shares
from dss_sim.groups.world import World
from dssd.machines.attempts import Attempts
from dssd.machines.delivery.events import ChunkRead, Deliver, Installed, Settle
from dssd.machines.delivery.outstanding import SentRange
from dssd.machines.delivery.retry import Resting, RestingCount
from dssd.machines.delivery.stream import DeliveredStream
from dssd.machines.messages import GrantedStream, Invalidate, Revoked, StreamReport
from support.judged import broken


class Lending(NamedTuple):
    """A session, the number of a grant that it has, and the grant."""

    world: World
    session: SimulatedSession
    grant: int
    held: HeldGrant

    @property
    def rules(self) -> SessionRules:
        return self.session.rules

    @property
    def lent(self) -> DeliveredStream:
        return next(each for each in self.session.window.streams() if each.grant == self.grant)

    def report(self, *, sent: int | None = None, attempts: Attempts = ()) -> StreamReport:
        return StreamReport(self.held.stream, 1, Progress(0), 0, attempts, sent)


@pytest.fixture
def lending() -> Lending:
    """As it is when a record has just been delivered."""
    plan = without_queues(plan_of(3))
    world = World(plan)
    for timed in plan.timed:
        world.schedule.after(timed.at_us, partial(happen, world, timed))
    while True:
        world.step()
        for session in world.sessions.values():
            for lent in session.window.streams():
                if lent.records.sent:
                    return Lending(world, session, lent.grant, session.grants[lent.grant])


def test_only_the_client_may_say_that_it_dropped_what_it_was_sent(lending: Lending) -> None:
    lending.rules.reported_last(lending.grant, lending.report(sent=4))
    with broken("S4"):
        lending.rules.reported_last(lending.grant, lending.report())
    lending.rules.given_back(lending.grant)
    lending.rules.reported_last(lending.grant, lending.report())


def test_a_subscription_must_not_be_left_before_its_final_reports(lending: Lending) -> None:
    with broken("I5"):
        lending.rules.dropped(lending.grant, "unsubscribed")
    lending.rules.reported_last(lending.grant, lending.report(sent=4))
    lending.rules.dropped(lending.grant, "unsubscribed")


def test_an_ack_must_be_durable_with_all_before_it_when_it_is_answered(lending: Lending) -> None:
    for token in (1, 2):
        acked = ((token, token + 1),)
        lending.rules.settled((Settle(lending.grant, acked, token=token),))
    lending.rules.check_answered(3, Ledger())
    with broken("S2"):
        lending.rules.check_answered(2, Ledger())


def test_a_report_must_hold_the_hand_outs_that_deliveries_told_of(lending: Lending) -> None:
    again = Deliver(lending.grant, b"", ((1, 2),), True, 3, 0, 2)
    lending.rules.check_delivery(again)
    lending.rules.reported(((lending.grant, lending.report(attempts=((0, 1, 2),))),))
    for attempts in ((), ((0, 1, 1),)):
        with broken("S10"):
            lending.rules.reported(((lending.grant, lending.report(attempts=attempts)),))


def test_a_report_must_hold_all_that_the_client_acknowledged(lending: Lending) -> None:
    lending.rules.settled((Settle(lending.grant, ((0, 1), (2, 3))),))
    whole = replace(lending.report(), progress=Progress(1, ((2, 3),)))
    lending.rules.reported(((lending.grant, whole),))
    with broken("A1"):
        lending.rules.reported(((lending.grant, replace(whole, progress=Progress(1))),))
    # After the final report, which is about to be made, it would be refused.
    lending.rules.reported_last(lending.grant, lending.report(sent=4))
    lending.rules.reported(((lending.grant, replace(whole, progress=Progress(1))),))


def test_who_has_less_out_than_its_share_must_not_wait(lending: Lending) -> None:
    window, lent = lending.session.window, lending.lent
    granted = GrantedStream(StreamId(99, 0), 1, Progress(0), 0, (), 0)
    installed = Installed(99, lent.subscription + 1, granted, 1_000)
    other = DeliveredStream(installed, window.credit.records, Resting(RestingCount()), 0)
    window._streams[99] = other
    share = window.credit.records // 4
    other.records.out.add(SentRange(0, share - 1, 0))
    check_shares(window)
    other.chunk = ChunkRead(99, 0, b"", (), 1, 0, 1)
    with broken("S12"):
        check_shares(window)
    other.records.out.add(SentRange(share, share + 1, 0))
    check_shares(window)
    other.records.out.take(share, share + 1)
    other.records.resting.rest(0, 1, 1)
    check_shares(window)


def test_a_window_must_wake_by_the_deadline_of_a_revoke(lending: Lending) -> None:
    window, now_ms = lending.session.window, lending.session.host.now_ms()
    lending.rules.asked_back(lending.grant, 500)
    window.wake_at_ms = now_ms + 500
    lending.rules.check_in_time()
    for wake_ms in (None, now_ms + 501):
        window.wake_at_ms = wake_ms
        with broken("I16"):
            lending.rules.check_in_time()
    lending.rules.reported_last(lending.grant, lending.report(sent=4))
    lending.rules.asked_back(lending.grant, 500)
    lending.rules.check_in_time()


def test_a_window_must_know_of_what_its_stream_has(lending: Lending) -> None:
    lent, log = lending.lent, lending.world.log
    lent.at_tail, lent.cursor = True, log.bounds(lent.stream).end
    lending.rules.check_read_on(log, ())
    lent.cursor -= 1
    lending.rules.check_read_on(log, (lending.grant,))
    with broken("L2"):
        lending.rules.check_read_on(log, ())


def test_a_session_must_be_told_that_its_leader_is_silent(lending: Lending) -> None:
    for borrower in lending.held.agent.borrowers():
        borrower.suspended = True
    with broken("S4"):
        lending.rules.check_borrowers(lending.world.leaders)
    lending.rules.suspended(lending.held.agent.subscription)
    lending.rules.check_borrowers(lending.world.leaders)


def test_a_subscription_that_was_left_must_end_with_its_last_borrower(lending: Lending) -> None:
    agent = lending.held.agent
    agent.leaving = True
    lending.rules.check_borrowers(lending.world.leaders)
    agent._incarnations.clear()
    with broken("I22"):
        lending.rules.check_borrowers(lending.world.leaders)
    lending.session.handler.ended(agent.subscription)
    lending.rules.check_borrowers(lending.world.leaders)


def test_a_message_about_a_grant_must_leave_others_and_newer_ones_alone(lending: Lending) -> None:
    held, rules = lending.held, lending.rules
    borrower_id, stream, epoch = held.borrower_id, held.stream, held.grant_epoch
    older = Invalidate(borrower_id, 1, "late", stream, epoch - 1)
    assert lending.grant in rules.held_besides(borrower_id, older)
    present = Revoked(borrower_id, 1, stream, epoch, Progress(0))
    assert lending.grant not in rules.held_besides(borrower_id, present)
    other = Invalidate(borrower_id, 1, "another", StreamId(99, 0), epoch)
    assert lending.grant in rules.held_besides(borrower_id, other)
    assert rules.held_besides(borrower_id, Invalidate(borrower_id, 1, "all")) == set()
