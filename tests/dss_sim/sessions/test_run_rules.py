"""The shortest stories that break each rule of `run`."""

import pytest

from dss_sim.groups.violation import Violation
from dss_sim.sessions.run_rules import Handled, Line, RunRules

LINE = Line("p0.1", "r0#1", "t0/0/0", 1, "a")
OTHER_KEY = LINE._replace(key="b")
NO_KEY = LINE._replace(key=None)
OTHER_GRANT = LINE._replace(grant_epoch=2)
ACK_WAIT_US = 2_000_000


@pytest.fixture
def rules() -> RunRules:
    return RunRules(ACK_WAIT_US)


def refused(
    rules: RunRules, line: Line = LINE, delay_us: int | None = 0, *, took_us: int = 0
) -> None:
    """A record at 5 is refused at time 0."""
    handled = Handled(line, 5, 1)
    rules.begun(handled, -took_us)
    rules.refused(handled, 0, delay_us)
    rules.ended(handled)


def test_two_handlers_for_one_key_break_k1(rules: RunRules) -> None:
    rules.begun(Handled(LINE, 5, 1), 0)
    for line in (OTHER_KEY, OTHER_GRANT):
        rules.begun(Handled(line, 6, 1), 0)
    for offset in (7, 8):
        rules.begun(Handled(NO_KEY, offset, 1), 0)
    with pytest.raises(Violation, match="K1"):
        rules.begun(Handled(LINE, 9, 1), 0)


def test_a_follower_that_overtakes_a_refused_record_breaks_k2(rules: RunRules) -> None:
    refused(rules)
    rules.begun(Handled(OTHER_KEY, 6, 1), 0)
    rules.begun(Handled(OTHER_GRANT, 6, 1), 0)
    with pytest.raises(Violation, match="K2"):
        rules.begun(Handled(LINE, 6, 1), 0)


def test_a_follower_may_go_on_once_the_refused_record_is_acked_or_is_here_again(
    rules: RunRules,
) -> None:
    refused(rules)
    again = Handled(LINE, 5, 2)
    rules.begun(again, 0)
    rules.ended(again)
    rules.begun(Handled(LINE, 6, 1), 0)
    rules.ended(Handled(LINE, 6, 1))
    refused(rules)
    rules.acked(Handled(LINE, 5, 1))
    rules.begun(Handled(LINE, 7, 1), 0)


@pytest.mark.parametrize(("delay_us", "due_us"), [(300_000, 300_000), (None, 1_000_000)])
def test_a_refused_record_that_does_not_rest_breaks_k3(
    rules: RunRules, delay_us: int | None, due_us: int
) -> None:
    refused(rules, NO_KEY, delay_us)
    with pytest.raises(Violation, match="K3"):
        rules.begun(Handled(NO_KEY, 5, 2), due_us - 10_000)
    refused(rules, NO_KEY, delay_us)
    rules.begun(Handled(NO_KEY, 5, 2), due_us)


def test_what_was_refused_behind_its_ack_wait_may_come_at_any_time(rules: RunRules) -> None:
    refused(rules, delay_us=None, took_us=ACK_WAIT_US + 1)
    rules.begun(Handled(LINE, 5, 2), 1_000)
    refused(rules, OTHER_KEY, delay_us=300_000, took_us=ACK_WAIT_US + 1_000_000)
    rules.begun(Handled(OTHER_KEY, 5, 2), 1_000)
    rules.paused.add(LINE.group)
    refused(rules, NO_KEY, delay_us=300_000, took_us=ACK_WAIT_US + 1)
    rules.begun(Handled(NO_KEY, 5, 2), 1_000)


def test_a_delay_counts_behind_the_ack_wait_while_the_record_rests_by_k3(rules: RunRules) -> None:
    refused(rules, delay_us=300_000, took_us=ACK_WAIT_US + 1)
    with pytest.raises(Violation, match="K3"):
        rules.begun(Handled(LINE, 5, 2), 1_000)
