"""The verdict of a group's page: the worst that is known of it, and what helps."""

from dss_client import Event, Group, GroupDescription, Rates, Verdict
from dss_client.group_values import Fates
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
    health="healthy",
)
HEALTHY = Verdict("healthy", "done", "It has acknowledged all.", ())
STUCK = Verdict("problem", "failing", "The record at 0 failed.", ("dssctl records skip x",))


def look(verdict: Verdict, events: tuple[Event, ...] = ()) -> GroupLook:
    return GroupLook(GroupDescription(GROUP, (), (), verdict, ()), events, ())


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


def test_the_verdict_is_that_of_the_daemon() -> None:
    verdict = group_verdict(look(STUCK, (error(NOW_US // 1_000),)), NOW_US)
    assert (verdict.health, verdict.sentence) == ("problem", STUCK.sentence)
    assert verdict.next == STUCK.commands


def test_an_error_counts_for_a_day_where_nothing_is_wrong_now() -> None:
    now_ms = NOW_US // 1_000
    recent = group_verdict(look(HEALTHY, (error(now_ms - 3_600_000),)), NOW_US)
    assert (recent.health, "Records went." in recent.sentence) == ("attention", True)
    assert "dssctl groups verify 'billing@orders/#'" in recent.next
    old = group_verdict(look(HEALTHY, (error(now_ms - 90_000_000),)), NOW_US)
    assert old.health == "healthy"
