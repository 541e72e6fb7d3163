"""Subscriptions that wait for their turn: when the judge says that it was too long."""

import pytest

from dss_sim.groups.turn_rules import TURN_MS_MAX, TurnRules
from dss_sim.groups.violation import Violation
from dssd.machines.delivery.events import Settle
from support.played_window import Client, Stream


@pytest.fixture
def waiting() -> Client:
    """A subscription that has records to read, of which the window was not told to read any."""
    client = Client()
    client.install(1, Stream([4]))
    client.feed(Settle(1, ((0, 4),), frontier=4))
    (lent,) = client.window.streams()
    lent.at_tail = False
    return client


def test_a_subscription_that_is_not_read_for_within_a_second_is_found(waiting: Client) -> None:
    rules = TurnRules()
    rules.check(waiting.window, (), 0)
    rules.check(waiting.window, (), TURN_MS_MAX)
    with pytest.raises(Violation, match="S12"):
        rules.check(waiting.window, (), TURN_MS_MAX + 1)


def test_who_is_read_for_or_suspended_or_stood_still_does_not_wait(waiting: Client) -> None:
    rules = TurnRules()
    rules.check(waiting.window, (), 0)
    rules.read(1)
    rules.check(waiting.window, (), TURN_MS_MAX + 1)
    rules.stood_still()
    rules.check(waiting.window, (), 2 * TURN_MS_MAX + 2)
    rules.check(waiting.window, (1,), 3 * TURN_MS_MAX + 2)
    rules.check(waiting.window, (), 3 * TURN_MS_MAX + 3)


def test_who_has_its_share_out_does_not_wait(waiting: Client) -> None:
    rules = TurnRules()
    (lent,) = waiting.window.streams()
    waiting.streams[1].append(600)
    lent.grow()
    waiting.feed(Settle(1))
    assert waiting.window.credit.out_records == 600
    lent.at_tail = False
    for now_ms in (0, TURN_MS_MAX + 1):
        rules.check(waiting.window, (), now_ms)
