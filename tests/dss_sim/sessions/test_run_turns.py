"""The shortest story that breaks K4, and what does not."""

import pytest

from dss_sim.groups.history import Appended, Declared, HandedOut
from dss_sim.groups.violation import Violation
from dss_sim.sessions.run_turns import TURN_US_MAX, RunTurns, Turn
from dssd.limits import ISOLATE_AFTER_DOUBTS

TURN = Turn("p0.1", "r0#1", "t0/0/0")


@pytest.fixture
def turns() -> RunTurns:
    turns = RunTurns()
    turns.take(Declared(0, TURN.group, ((TURN.stream, 0),), 0))
    turns.take(Appended(0, TURN.stream, 2))
    return turns


def given(turns: RunTurns, offset: int, at_us: int) -> None:
    turns.take(HandedOut(at_us, TURN.group, TURN.stream, offset, TURN.member, 1, 1, False))


def test_a_free_run_that_is_given_nothing_for_too_long_breaks_k4(turns: RunTurns) -> None:
    turns.look([TURN], 1)
    given(turns, 0, 2)
    turns.look([TURN], 2 + TURN_US_MAX)
    with pytest.raises(Violation, match="K4"):
        turns.look([TURN], 3 + TURN_US_MAX)


def test_what_held_a_run_up_counts_anew(turns: RunTurns) -> None:
    turns.look([TURN], 1)
    turns.look([], TURN_US_MAX)
    turns.look([TURN], 2 * TURN_US_MAX)
    turns.look([TURN], 3 * TURN_US_MAX)


def test_a_run_whose_stream_has_nothing_new_waits_for_ever(turns: RunTurns) -> None:
    given(turns, 0, 1)
    given(turns, 1, 1)
    turns.look([TURN], 1)
    turns.look([TURN], 9 * TURN_US_MAX)


def vanished(turns: RunTurns, clients: int, group: str = TURN.group) -> None:
    for at in range(clients):
        turns.vanished([group], 10 + at)


def test_what_many_clients_may_have_vanished_with_may_rest(turns: RunTurns) -> None:
    vanished(turns, ISOLATE_AFTER_DOUBTS)
    turns.look([TURN], 20)
    turns.look([TURN], 21 + TURN_US_MAX)


def test_what_fewer_clients_of_the_group_vanished_with_breaks_k4(turns: RunTurns) -> None:
    vanished(turns, ISOLATE_AFTER_DOUBTS - 1)
    vanished(turns, 1, "r1#2")
    turns.look([TURN], 20)
    with pytest.raises(Violation, match="0 waits"):
        turns.look([TURN], 21 + TURN_US_MAX)


def test_what_was_appended_after_one_of_them_breaks_k4(turns: RunTurns) -> None:
    vanished(turns, ISOLATE_AFTER_DOUBTS)
    turns.take(Appended(11, TURN.stream, 3))
    turns.look([TURN], 20)
    with pytest.raises(Violation, match="2 waits"):
        turns.look([TURN], 21 + TURN_US_MAX)
