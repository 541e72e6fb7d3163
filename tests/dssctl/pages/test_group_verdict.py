"""The verdict of a group's page: the worst that is known of it, and what helps."""

from dataclasses import replace

import pytest

from dss_client import Event, Group, GroupDescription, Rates, Reason, Stuck
from dss_client.group_counts import Fates
from dssctl.pages.group_page import GroupLook, group_verdict

NOW_US = 1_800_000_000_000_000
STILL = Rates(0.0, 0.0)
GROUP = Group(
    group_id=1,
    name="billing",
    filter="orders/#",
    kind="shared",
    start="now",
    created_at_ms=0,
    state="active",
    state_reason="",
    borrowers=2,
    standby=0,
    streams=4,
    lag=0,
    lag_exact=True,
    oldest_unacked_us=None,
    leader_epoch=3,
    ack_wait_ms=30_000,
    protocol="borrow",
    on_damage="pass",
    fates=Fates(10, 0, 0, 0, 0),
    revision=1,
    paused=False,
    paused_until_ms=None,
    arrivals=STILL,
    acks=STILL,
    drain_ms=0,
    leader_since_ms=0,
)
BEHIND = replace(GROUP, lag=7, drain_ms=None, oldest_unacked_us=NOW_US - 90_000_000)
IN_FLIGHT = replace(BEHIND, lag=1, oldest_unacked_us=NOW_US - 900_000, arrivals=Rates(9.1, 9.0))
REASON = Reason("capped", "Too many ranges.", "dssctl records skip x", "c", None, None, 0, None)


def look(group: Group, *stuck: Stuck, events: tuple[Event, ...] = ()) -> GroupLook:
    return GroupLook(GroupDescription(group, (), ()), stuck, events, ())


def error(at_ms: int) -> Event:
    return Event(
        number=1,
        at_ms=at_ms,
        severity="error",
        code="retention.lost",
        subject="billing@orders/#",
        sentence="Records went.",
        fields={},
        times=1,
        last_at_ms=at_ms,
    )


@pytest.mark.parametrize(
    ("group", "health", "words"),
    [
        (GROUP, "healthy", "acknowledged all"),
        (replace(GROUP, borrowers=0), "healthy", "Nobody is a member"),
        (replace(BEHIND, drain_ms=60_000), "healthy", "7 records wait, and none will in 1m00s"),
        (IN_FLIGHT, "healthy", "It is at work: 1 record waits."),
        (replace(IN_FLIGHT, drain_ms=900_000), "healthy", "It is at work: 1 record waits."),
        (BEHIND, "attention", "does not catch up: 7 records wait, the oldest for 1m30s"),
        (replace(BEHIND, borrowers=0), "attention", "Nobody is a member, and 7 records wait"),
        (replace(GROUP, state="rebalancing"), "attention", "change hands"),
        (replace(GROUP, state="stalled", state_reason="orders/0/1: x"), "problem", "orders/0/1: x"),
        (replace(GROUP, paused=True), "attention", "An operator paused it; 0 records wait"),
    ],
)
def test_a_group_is_judged_by_the_worst_that_is_known(
    group: Group, health: str, words: str
) -> None:
    verdict = group_verdict(look(group), NOW_US)
    assert verdict.health == health
    assert words in verdict.sentence


def test_a_stream_that_does_not_move_is_named_with_what_helps() -> None:
    stuck = Stuck("billing@orders/#", "orders/0/1", REASON, 7, 60_000)
    verdict = group_verdict(look(BEHIND, stuck, stuck), NOW_US)
    assert verdict.health == "problem"
    assert verdict.sentence == "orders/0/1: Too many ranges. So stands 1 more stream."
    assert verdict.next == ("dssctl records skip x",)


def test_an_error_counts_for_a_day() -> None:
    now_ms = NOW_US // 1_000
    recent = group_verdict(look(GROUP, events=(error(now_ms - 3_600_000),)), NOW_US)
    assert (recent.health, "Records went." in recent.sentence) == ("attention", True)
    assert "dssctl groups verify 'billing@orders/#'" in recent.next
    old = group_verdict(look(GROUP, events=(error(now_ms - 90_000_000),)), NOW_US)
    assert old.health == "healthy"
