"""The verdict of a group's page: the worst that is known of it, and what helps."""

from dataclasses import replace

from dss_client import Event, Group, GroupDescription, Rates, Verdict
from dss_client.group_values import Fates
from dssctl.group_items import group_item
from dssctl.pages.group_page import GROUP_PAGE_KIND, GroupLook, group_verdict

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


def queues_and_retries(group: Group) -> tuple[str, str]:
    item = group_item(group)
    columns = {column.header: column for column in GROUP_PAGE_KIND.columns}
    return columns["QUEUES"].text(item, NOW_US), columns["RETRIES"].text(item, NOW_US)


def test_the_page_says_what_becomes_of_records_that_fail() -> None:
    queues, retries = queues_and_retries(GROUP)
    assert (queues, retries) == ("none: a record that fails comes again for ever", "-")
    careful = replace(
        GROUP,
        max_deliver=5,
        backoff_ms=(1_000, 30_000),
        queue_records=1_000,
        queue_bytes=4 << 30,
        retrying=3,
        dead=2,
    )
    queues, retries = queues_and_retries(careful)
    assert queues == "3 retrying, 2 dead"
    assert retries == (
        "dead after 5 failures, back-off 1s,30s, at most 1000 records or 4.0G of a stream in its "
        "queues"
    )
