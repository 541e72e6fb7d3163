"""Each line that the dashboard shows does what the dashboard does."""

import shlex
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from unittest.mock import patch

import pytest

from dss_client.changes import (
    BuryRetries,
    CancelJob,
    Change,
    CloseSession,
    DiscardDeadLetters,
    Evict,
    MoveCursors,
    PauseGroup,
    PauseJob,
    PauseSchedule,
    Rebalance,
    RedriveDeadLetters,
    RemoveGroup,
    RemoveJob,
    RemoveTopic,
    ResumeGroup,
    ResumeJob,
    ResumeSchedule,
    RetryNow,
    RevokeGrant,
    SkipRecords,
    SkipRetries,
    TransferGrant,
    Undo,
)
from dssctl.settings import Settings
from dssctl.top.model.answers import Answer
from dssctl.top.model.places import Place
from dssctl.top.stage.actions import ACTION_TABLE
from dssctl.top.stage.command_lines import change_line, trigger_line
from dssctl.top.stage.moves import chosen, tab_chosen
from dssctl.top.stage.screens import SCREENS
from dssctl.top.stage.view import View, looked
from dssctl.tree import root
from support.dashboard_items import NOW_MS, ORDERS, PAYMENTS, dead_letters

Viewed = Callable[..., View]
ODD = "it's $odd@a b/#"

CHANGES: list[Change] = [
    MoveCursors(PAYMENTS, "rewind", to="2026-11-22T03:31:43Z"),
    MoveCursors(PAYMENTS, "rewind", by=-100, streams=("payments/0/1", "payments/0/2")),
    MoveCursors(PAYMENTS, "rewind", by=-timedelta(minutes=15)),
    MoveCursors(ODD, "skip", to="latest"),
    MoveCursors(PAYMENTS, "skip", by=7),
    MoveCursors(PAYMENTS, "seek", by=-7),
    SkipRecords(PAYMENTS, "payments/0/1", 12, 3),
    Undo(7),
    PauseGroup(PAYMENTS),
    PauseGroup(PAYMENTS, NOW_MS),
    ResumeGroup(ODD),
    Rebalance(PAYMENTS),
    Rebalance(PAYMENTS, 4),
    PauseSchedule("night-scrub"),
    ResumeSchedule("night-scrub"),
    RemoveGroup(ODD),
    RemoveTopic("payments", force=True),
    CloseSession("-client"),
    Evict(PAYMENTS, "0abc", 30_000, 3_600_000),
    TransferGrant(PAYMENTS, "payments/0/1", "c 3"),
    RevokeGrant(PAYMENTS, "payments/0/1"),
    PauseJob("eu-again"),
    ResumeJob("eu-again"),
    CancelJob("eu-again"),
    RemoveJob("eu-again"),
    RedriveDeadLetters(PAYMENTS, error="abc", key=b"it's", canary=5),
    DiscardDeadLetters(PAYMENTS, stream="payments/0/1", offset=7),
    RetryNow(ODD, key=b"-k"),
    SkipRetries(PAYMENTS, stream="payments/0/1", offset=7),
    BuryRetries(PAYMENTS, stream="payments/0/1"),
]
COMMANDS = (
    "borrowers",
    "dlq",
    "grants",
    "groups",
    "jobs",
    "offsets",
    "ops",
    "records",
    "rq",
    "schedules",
    "sessions",
    "topics",
)


def made_by(line: str) -> tuple[Change, Settings]:
    """The change that a command line makes, and how."""
    words = shlex.split(line)
    assert words[0] == "dssctl"
    made: list[Change] = []
    settings = Settings()
    with ExitStack() as patched:
        for name in COMMANDS:
            patched.enter_context(
                patch(
                    f"dssctl.commands.{name}.carry_out",
                    lambda _context, change, *_, **__: made.append(change),
                )
            )
        context = patched.enter_context(root().make_context("dssctl", words[1:], obj=settings))
        context.command.invoke(context)
    (change,) = made
    return change, settings


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: type(change).__name__)
def test_a_line_makes_exactly_the_change(change: Change) -> None:
    made, settings = made_by(change_line(change, revision=7, reason="because 'so'"))
    assert made == change
    assert settings.change.if_revision == 7
    assert settings.change.reason == "because 'so'"


def with_dead_letters(view: View) -> View:
    """What a daemon answers of queues; on a list of what waits, that it waits."""
    errors, keys, entries = dead_letters()
    if view.tab.listing.title == "Retries":
        entries = tuple(replace(each, level="retry") for each in entries)
    answer = Answer(view.here.place, errors=errors, keys=keys, entries=entries)
    return looked(replace(view, answer=answer))


def test_every_action_has_a_line(viewed: Viewed) -> None:
    shown = set()
    places = [
        Place("schedules"), Place("jobs"), Place("job", name="audit-orders"),
        Place("groups"), Place("group", group=PAYMENTS), Place("topics"), Place("sessions"),
        Place("dead", group=PAYMENTS), Place("operations"),
        Place("record", group=ORDERS, stream="orders/0/0", offset=3),
    ]  # fmt: skip
    for place in places:
        there = with_dead_letters(viewed(place))
        for tab in range(len(there.screen.tabs)):
            spot = chosen(with_dead_letters(tab_chosen(there, tab)), 0).chosen
            assert spot is not None
            for action in ACTION_TABLE:
                if action.applies(spot):
                    shown.add(action.key)
                    assert action.title(spot)
                    if action.change is None:
                        parsed(shlex.split(trigger_line(spot.row.name, "TKT 7"))[1:])
                        continue
                    typed = {"T": "c-05", "D": "10"}.get(action.key, "earliest")
                    change = action.change(spot, typed)
                    assert made_by(change_line(change))[0] == change
    assert shown == {action.key for action in ACTION_TABLE}


def test_a_time_is_resolved_so_that_plan_and_line_mean_the_same(viewed: Viewed) -> None:
    rewind = next(action for action in ACTION_TABLE if action.key == "W")
    spot = viewed(Place("groups")).chosen
    assert spot is not None
    assert rewind.change is not None
    assert rewind.change(spot, "-15m") == MoveCursors(PAYMENTS, "rewind", to="2026-11-22T03:51:43Z")
    assert rewind.change(spot, "250") == MoveCursors(PAYMENTS, "rewind", by=-250)


def test_the_line_of_each_list_is_one_that_the_program_takes(viewed: Viewed) -> None:
    for noun in SCREENS:
        place = Place(noun, group=PAYMENTS, stream="payments/0/0", name="7", offset=3)
        for tab in SCREENS[noun].tabs:
            words = shlex.split(tab.command(place))
            assert words[0] == "dssctl"
            if "--help" not in words and words[1] != "--help":
                parsed(words[1:])


def parsed(words: list[str]) -> None:
    """Parse a command line without running it."""
    program = root()
    with program.make_context("dssctl", words, obj=Settings()) as context:
        name, command, rest = program.resolve_command(context, words)
        while rest:
            inner = command.make_context(name, list(rest), parent=context)
            if not hasattr(command, "resolve_command"):
                return
            name, command, rest = command.resolve_command(inner, list(rest))
