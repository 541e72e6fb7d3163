"""The verdict on a group: the worst that is known of it, and what helps."""

from dataclasses import replace

import pytest

from dss_core.answers import Reason
from dssd.questions.overviews import Overview
from dssd.questions.rates import Rates
from dssd.questions.stuck import Stuck
from dssd.questions.verdicts import Level, verdict_of
from support.overviews import DONE, GROUP, NOW_US

BEHIND = replace(DONE, lag=7, oldest_unacked_us=NOW_US - 90_000_000)
CATCHES_UP = replace(BEHIND, acks=Rates(0.2, 0.2), arrivals=Rates(0.1, 0.1))
IN_FLIGHT = replace(BEHIND, lag=1, oldest_unacked_us=NOW_US - 900_000, arrivals=Rates(9.1, 9.0))
PAUSED = replace(GROUP, paused=True)
LANED = replace(GROUP, max_deliver=3, queue_records=10)
SMALL = replace(LANED, queue_bytes=2_048)
BLOCKED = replace(LANED, ordered=True, on_dead_letter="block")


@pytest.mark.parametrize(
    ("group", "level", "code", "words"),
    [
        (DONE, "healthy", "done", "acknowledged all records that it is to get."),
        (replace(DONE, borrowers=0), "healthy", "done", "Nobody is a member."),
        (CATCHES_UP, "healthy", "at-work", "7 records wait, and none will in 1m10s."),
        (IN_FLIGHT, "healthy", "at-work", "It is at work: 1 record waits."),
        (BEHIND, "attention", "behind", "catch up: 7 records wait, the oldest for 1m30s."),
        (replace(BEHIND, lag_exact=False), "attention", "behind", "at most 7 records wait"),
        (replace(BEHIND, borrowers=0), "problem", "no-members", "a member, and 7 records wait."),
        (replace(DONE, state="rebalancing"), "attention", "rebalancing", "change hands"),
        (
            replace(DONE, state="stalled", state_reason="o/0/1: x"),
            "problem",
            "stalled",
            "o/0/1: x.",
        ),
        (replace(CATCHES_UP, failing=True), "problem", "failing", "fails again and again"),
        (
            replace(DONE, retrying=2),
            "healthy",
            "at-work",
            "wait, 2 failed and come again.",
        ),
        (
            replace(DONE, retrying=2, borrowers=0),
            "problem",
            "no-members",
            "2 failed and come again",
        ),
        (replace(DONE, dead=1), "attention", "dead", "1 record is dead."),
        (replace(BEHIND, dead=2), "attention", "dead", "2 records are dead; 7 records wait."),
        (replace(DONE, dead=2, group=BLOCKED), "attention", "dead", "their keys wait for them"),
        (replace(DONE, dead=1, fullest=9, group=LANED), "attention", "dead", "1 record is dead."),
        (
            replace(BEHIND, retrying=4, dead=9, fullest=10, group=LANED),
            "problem",
            "queues-full",
            "hold 10 records, as many as they may",
        ),
        (
            replace(BEHIND, dead=10, fullest=10, group=replace(LANED, ordered=True)),
            "problem",
            "queues-full",
            "a failed record waits in its stream for room, and holds up its key",
        ),
        (
            replace(BEHIND, dead=9, fullest=9, fullest_bytes=2_048, group=SMALL),
            "problem",
            "queues-full",
            "hold 2.0K, as much as they may",
        ),
        (
            replace(BEHIND, dead=9, fullest=9, fullest_bytes=2_047, group=SMALL),
            "attention",
            "dead",
            "9 records are dead",
        ),
        (replace(CATCHES_UP, stuck=True), "problem", "stuck", "does not move"),
        (replace(CATCHES_UP, error="Records went."), "attention", "error", "Records went."),
        (replace(BEHIND, error="Records went."), "attention", "behind", "does not catch up"),
        (replace(BEHIND, failing=True, group=PAUSED), "attention", "paused", "; 7 records wait."),
    ],
)
def test_the_first_rule_that_holds_decides(
    group: Overview, level: str, code: str, words: str
) -> None:
    verdict = verdict_of(group)
    assert (verdict.level, verdict.code) == (level, code)
    assert words in verdict.sentence


@pytest.mark.parametrize(
    "halted",
    [{"failing": True}, {"stuck": True}, {"borrowers": 0}, {"state": "paused"}],
    ids=lambda halted: next(iter(halted)),
)
def test_nobody_forecasts_the_drain_of_a_lag_that_cannot_drain(halted: dict[str, object]) -> None:
    assert CATCHES_UP.drain_ms == 70_000
    assert replace(CATCHES_UP, **halted).drain_ms is None  # type: ignore[arg-type]


def test_a_member_that_does_not_obey_a_pause_is_worse_than_the_pause() -> None:
    paused = Stuck("g", "", Reason("paused", "It is paused."), 7, None)
    waits = Stuck("g", "", Reason("operation-waits", "Operation 3 waits."), 7, 60_000)
    group = replace(BEHIND, group=PAUSED)
    assert verdict_of(group, (paused,)).code == "paused"
    assert verdict_of(group, (waits, paused)).level is Level.PROBLEM


def test_an_error_of_today_is_told_with_how_to_verify_the_group() -> None:
    verdict = verdict_of(replace(CATCHES_UP, error="Records went."))
    assert "dssctl groups verify 'billing@orders/#'" in verdict.commands


def test_whatever_is_wrong_has_a_command_that_helps() -> None:
    for group in (BEHIND, replace(BEHIND, borrowers=0), replace(BEHIND, failing=True)):
        commands = verdict_of(group).commands
        assert commands
        assert all(each.startswith("dssctl ") for each in commands)


def test_a_stream_that_does_not_move_is_named_with_what_helps() -> None:
    reason = Reason("capped", "Too many ranges.", "dssctl records skip x")
    stuck = Stuck("billing@orders/#", "orders/0/1", reason, 7, 60_000)
    verdict = verdict_of(CATCHES_UP, (stuck, stuck))
    assert (verdict.level, verdict.code) == (Level.PROBLEM, "capped")
    assert verdict.sentence == "orders/0/1: Too many ranges. So stands 1 more stream."
    assert verdict.commands == ("dssctl records skip x",)
