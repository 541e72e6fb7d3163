"""Each rule of queues, broken by the shortest history that breaks it."""

import pytest

from dss_sim.groups.checker import Checker, Violation
from dss_sim.groups.history import (
    AckDurable,
    Acked,
    Committed,
    Declared,
    Disturbed,
    Ended,
    Errand,
    ErrandEnded,
    Event,
    HandedOut,
    LaneTaken,
    Nakked,
    Queued,
    QueuesBorn,
    Redriven,
    Stored,
)

MAIN, RETRY, DEAD = "t/0/0", "t/0/0~g.retry", "t/0/0~g.dead"
BEGUN: list[Event] = [
    Declared(0, "g", ((MAIN, 0),), 0),
    QueuesBorn(0, "g", MAIN, RETRY, DEAD, 2),
    Stored(0, MAIN, 0, 1, "p", 0, 0, "sync", (None,)),
]


def out(stream: str, at_us: int = 10, attempt: int = 1, offset: int = 0) -> HandedOut:
    return HandedOut(at_us, "g", stream, offset, "c", 1, attempt, stream != MAIN)


def refused(stream: str, error: str, *, rejected: bool = False) -> Nakked:
    return Nakked(20, "g", stream, 0, "c", 0, error, rejected)


def entry(stream: str, source: str, **changed: object) -> Queued:
    usual = Queued(30, "g", stream, 0, source, 0, 1, 0, "refused", "e1", 1, None)
    return usual._replace(**changed)  # type: ignore[arg-type]  # its own fields


FAILED = [*BEGUN, out(MAIN), refused(MAIN, "e1"), entry(RETRY, MAIN)]
KILLED = [
    *FAILED,
    out(RETRY),
    refused(RETRY, "e2"),
    entry(DEAD, RETRY, attempt=2, error="e2"),
]
DONE: list[Committed] = [
    Committed(50, "g", MAIN, 1, (), -1),
    Committed(50, "g", RETRY, 1, (), -1, 1),
    Committed(50, "g", DEAD, 0, (), -1, 1),
]


SKIPPED = Errand(35, "g", RETRY, "skip", ((0, 1),), 7)
AGAIN = entry(RETRY, RETRY, offset=1, attempt=2, error="e2")
REDRIVEN = Redriven(45, "g", DEAD, ((0, 1),), ())
STOPPED = DONE[2]._replace(stopped=True)


def broken(*events: Event) -> str | None:
    """The rule that the history breaks."""
    judge = Checker()
    try:
        judge.take_all(events)
    except Violation as violation:
        return violation.invariant
    return None


def test_a_way_through_all_levels_breaks_nothing() -> None:
    assert broken(*KILLED, *DONE, Ended(60)) is None


@pytest.mark.parametrize(
    ("rule", "events"),
    [
        ("Q1", [*FAILED, entry(RETRY, MAIN, offset=1)]),
        ("Q2", [*BEGUN, LaneTaken(5, "g", MAIN, 2), entry(RETRY, MAIN)]),
        ("Q3", [*FAILED, Disturbed(35, "x"), out(MAIN, attempt=2)._replace(redelivered=True)]),
        (
            "Q3",
            [*BEGUN, out(MAIN), Acked(20, "g", MAIN, 0, "c"),
             AckDurable(20, "g", MAIN, ((0, 1),), "c"), entry(RETRY, MAIN), out(RETRY)],
        ),
        ("Q4", [*FAILED[:-1], entry(RETRY, MAIN, due_us=900_000), out(RETRY, at_us=40)]),
        ("Q5", [*KILLED[:-1], entry(DEAD, RETRY, attempt=2, error="e1")]),
        ("Q5", [*KILLED[:-1], entry(DEAD, RETRY, attempt=1, error="e2")]),
        ("Q5", [*KILLED[:-1], entry(DEAD, RETRY, attempt=3, error="e2")]),
        ("Q5", [*KILLED[:-1], entry(DEAD, RETRY, attempt=2, error="e2", cause="rejected")]),
        ("Q6", [*FAILED, DONE[1]._replace(floor=0), Ended(60)]),
        ("Q6", [*FAILED, DONE[0], DONE[1]._replace(floor=0, applied_end=2), Ended(60)]),
        ("Q7", [*KILLED, entry(RETRY, DEAD, offset=1, cause="redriven")]),
        ("Q11", [*FAILED, SKIPPED, ErrandEnded(50, "g", 7)]),
        ("Q11", [*FAILED, SKIPPED, out(RETRY), refused(RETRY, "e2"), AGAIN, *DONE[:1],
                 DONE[1], ErrandEnded(60, "g", 7)]),
        ("L2", [*KILLED, Redriven(45, "g", DEAD, ((0, 1),), ()), *DONE, Ended(60)]),
        ("S2", [*BEGUN, out(MAIN), refused(MAIN, "e1"), DONE[0]]),
        ("L2", [*FAILED, DONE[0], DONE[1]._replace(floor=0), Ended(60)]),
    ],
)  # fmt: skip
def test_each_rule_is_seen(rule: str, events: list[Event]) -> None:
    assert broken(*events) == rule


def test_dead_letters_may_stay_where_their_redrive_was_stopped() -> None:
    assert broken(*KILLED, REDRIVEN, *DONE[:2], STOPPED, Ended(60)) is None


def test_what_is_passed_over_is_done_with_once_it_waits_no_more() -> None:
    assert broken(*FAILED, SKIPPED, *DONE[:2], ErrandEnded(60, "g", 7)) is None


def test_what_is_to_wait_again_does_not_come_before_its_time() -> None:
    later = entry(RETRY, MAIN, due_us=900_000)
    now = SKIPPED._replace(what="now")
    comes = out(RETRY, at_us=40)
    assert broken(*FAILED[:-1], later, now, comes) is None
    assert broken(*FAILED[:-1], later, now, now._replace(what="later"), comes) == "Q4"


def test_a_rejected_record_is_dead_after_any_attempt() -> None:
    rejected = entry(DEAD, MAIN, cause="rejected")
    told = [*BEGUN, out(MAIN), refused(MAIN, "e1", rejected=True), rejected]
    assert broken(*told, DONE[0], DONE[2], Ended(60)) is None


@pytest.mark.parametrize(("reported", "rule"), [(1, "Q12"), (2, None)])
def test_what_was_discarded_does_not_come_where_it_had_gone_untold(
    reported: int, rule: str | None
) -> None:
    back = entry(RETRY, DEAD, offset=1, cause="redriven", attempt=0, error="")
    discarded = Redriven(55, "g", DEAD, (), ((0, 1),))
    retry = Committed(56, "g", RETRY, 1, (), -1, reported)
    dead = Committed(56, "g", DEAD, 1, (), -1, 1)
    told = [*KILLED, *DONE, REDRIVEN, back, discarded, retry, dead]
    comes = out(RETRY, at_us=60, offset=1)._replace(attempt=1)
    assert broken(*told, comes) == rule
