"""A turn on the event loop: kept as long as it may be, then given up."""

import pytest

from dssd.loop_yield import LoopTurn
from support.loop_yields import turns_of_others

ROUNDS = 50


async def rounds(count: int) -> None:
    turn = LoopTurn()
    for _ in range(count):
        await turn.give_way()


async def test_a_turn_that_is_not_over_costs_the_loop_nothing() -> None:
    assert await turns_of_others(rounds(3)) <= 1


@pytest.mark.usefixtures("short_turns")
async def test_a_turn_that_is_over_is_given_up_in_each_round() -> None:
    assert await turns_of_others(rounds(ROUNDS)) >= ROUNDS
