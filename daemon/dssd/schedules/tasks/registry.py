"""Every task of this daemon, in one list.

What a part of the daemon can do by the clock is made a `Task` in a module beside this one, and
named here. Tasks stand below questions and the wire, so what they need of these comes as functions.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from dssd.schedules.tasks.checkpoint import checkpoint
from dssd.schedules.tasks.model import Tasks


@dataclass(frozen=True, slots=True)
class TaskParts:
    """What tasks ask of the rest of the daemon."""

    write_back: Callable[[], Awaitable[int]]
    """Writes the store's log back; returns how many bytes it had."""


def built_in(parts: TaskParts) -> Tasks:
    """The tasks."""
    return Tasks([checkpoint(parts.write_back)])
