"""How a step of a borrower runs, under either protocol: through a table of its states and inputs.

Invariant: a step tells its changes once, at its end. This module knows no entry of a table.
"""

from collections.abc import Callable, Mapping
from typing import TypeVar

from dssd.machines.borrower.events import BorrowerInput
from dssd.machines.borrower.state import BorrowerState, Effects, Holder, tell_changes
from dssd.machines.messages import ToBorrower

H = TypeVar("H", bound=Holder)

Transitions = Mapping[tuple[BorrowerState, type[BorrowerInput]], Callable[..., None]]
"""Each entry is called with the state, the input and the effects so far."""

Messages = Mapping[tuple[BorrowerState, type[ToBorrower]], Callable[..., None]]
"""Each entry is called with the state, the message, the time and the effects so far."""


def take_step(transitions: Transitions, state: H, given: BorrowerInput) -> tuple[H, Effects]:
    """Take one input: the state, updated in place and returned, and what to do, in order."""
    effects: Effects = []
    transitions[state.state, type(given)](state, given, effects)
    tell_changes(state, effects)
    return state, effects


def ignore(state: Holder, given: object, effects: Effects) -> None:
    """Nothing happens, and that is meant."""


def ignore_message(state: Holder, message: object, now_ms: int, effects: Effects) -> None:
    """Nothing happens, and that is meant."""
