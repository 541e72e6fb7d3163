"""Conditions: how they are written, and when they hold."""

import pytest

from dss_core.errors import IllegalArgument
from dssctl.awaited.conditions import Picture, conditions_of

GROUP: Picture = {
    "lag": 7,
    "retrying": 6,
    "dead": 0,
    "members": 2,
    "standby": 0,
    "streams": 4,
    "moving": 1,
    "oldest": 90_000,
    "state": "active",
    "health": "problem",
}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("lag=7", True),
        ("lag=0", False),
        ("lag<=7", True),
        ("retrying=0", False),
        ("retrying>5,dead=0", True),
        ("members>=2,lag>3", True),
        ("members>=2,lag>7", False),
        ("oldest<5m", True),
        ("state=active", True),
        ("state!=active", False),
        ("active", True),
        ("healthy", False),
        ("health!=healthy", True),
        ("streams-moved", False),
        ("moving=1", True),
        ("exists", True),
        ("gone", False),
    ],
)
def test_a_condition_on_a_group_holds_where_all_of_it_does(text: str, holds: bool) -> None:
    assert all(each.holds(GROUP) for each in conditions_of("group", [text])) is holds


def test_of_what_is_not_there_only_that_holds() -> None:
    gone, exists, lag = conditions_of("group", ["gone", "exists", "lag=0"])
    assert [each.holds(None) for each in (gone, exists, lag)] == [True, False, False]
    assert lag.is_now(None, "group") == "it is not there"


def test_without_an_unacknowledged_record_the_oldest_is_of_no_age() -> None:
    (young,) = conditions_of("group", ["oldest<1s"])
    assert young.holds({**GROUP, "oldest": None})
    assert young.is_now(GROUP, "group") == "oldest is 1m30s"


def test_streams_have_not_moved_while_members_that_came_wait_for_their_share() -> None:
    shared: Picture = {**GROUP, "moving": 0}
    moved = conditions_of("group", ["streams-moved"])
    assert all(each.holds(shared) for each in moved)
    assert not all(each.holds({**shared, "state": "rebalancing"}) for each in moved)


def test_words_of_operations_and_of_the_daemon_mean_states() -> None:
    done, ended = conditions_of("op", ["done,ended"])
    failed: Picture = {"state": "failed", "ended": 1, "streams-waiting": 0}
    assert [done.holds(failed), ended.holds(failed)] == [False, True]
    ready, stopped = conditions_of("daemon", ["ready", "stopped"])
    assert ready.holds({"state": "serving", "sessions": 0, "groups": 0})
    assert stopped.holds(None)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("group", "lag"),
        ("group", "lag=many"),
        ("group", "colour=red"),
        ("group", "ended"),
        ("group", "oldest>5m"),
        ("group", "state>active"),
        ("session", "lag=0"),
        ("daemon", ""),
    ],
)
def test_what_is_no_condition_is_refused_with_those_that_are(kind: str, text: str) -> None:
    with pytest.raises(IllegalArgument, match="=N"):
        conditions_of(kind, [text])
