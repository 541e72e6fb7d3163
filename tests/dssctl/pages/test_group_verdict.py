"""The verdict of a group's page: the worst that is known of it, and what helps."""

from dss_client import Event, GroupDescription, Verdict
from dssctl.pages.group_page import GroupLook, group_verdict
from support.dashboard_items import group

NOW_US = 1_800_000_000_000_000
GROUP = group("billing", created_at_ms=0)
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
