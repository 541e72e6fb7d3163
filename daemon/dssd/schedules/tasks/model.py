"""A task: a name, its arguments, and work that may report progress and may fail.

Invariant: a task gets checked arguments, and changes nothing outside of its work. It may be
cancelled at any await, and then leaves nothing half done. This module knows no task.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from dss_core.errors import IllegalArgument, TaskNotFound

TASK_ARGUMENTS_MAX = 16
"""More than any task takes."""

TASK_ARGUMENT_BYTES_MAX = 1_024
"""A URL, a path, a list of groups."""


class Say(Protocol):
    """Takes what a run has to tell."""

    def __call__(self, line: str, /) -> None:
        """A line that is kept."""

    def now(self, line: str, /) -> None:
        """How far it is: shown while it runs, until the next such line."""


Given = Mapping[str, Any]
"""Arguments by name, parsed, all that the task has."""

Arguments = Mapping[str, str]
"""As they were written."""


@dataclass(frozen=True, slots=True)
class Argument:
    """What a task may be given."""

    name: str
    meaning: str
    parse: Callable[[str], Any]
    """Raises `DssError` where it is none."""
    default: str = ""
    """As it would be written."""


@dataclass(frozen=True, slots=True)
class Task:
    """A task."""

    name: str
    meaning: str
    work: Callable[[Given, Say], Awaitable[None]]
    """Raises `DssError` where it fails."""
    arguments: tuple[Argument, ...] = ()
    alone: bool = True
    """Two runs of it at a time would interfere."""

    def given(self, arguments: Arguments) -> Given:
        """The arguments as the work takes them.

        Raises:
            DssError: one breaks its rule.
        """
        known = {each.name: each for each in self.arguments}
        if len(arguments) > TASK_ARGUMENTS_MAX:
            rule = f"at most {TASK_ARGUMENTS_MAX} are taken"
            raise IllegalArgument(argument=f"{len(arguments)} arguments", rule=rule)
        for name, text in arguments.items():
            if name not in known:
                listed = ", ".join(known) or "none"
                rule = f"the task {self.name} takes {listed}"
                raise IllegalArgument(argument=f"the argument {name}", rule=rule)
            if len(text.encode()) > TASK_ARGUMENT_BYTES_MAX:
                rule = f"it has at most {TASK_ARGUMENT_BYTES_MAX} bytes"
                raise IllegalArgument(argument=f"the argument {name}", rule=rule)
        return {
            each.name: each.parse(arguments.get(each.name, each.default)) for each in self.arguments
        }


class Tasks:
    """Those that this daemon has, by name."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._by_name = {task.name: task for task in tasks}

    def __iter__(self) -> Iterator[Task]:
        """By name."""
        return iter(sorted(self._by_name.values(), key=lambda task: task.name))

    def get(self, name: str) -> Task:
        """The task of that name.

        Raises:
            TaskNotFound: there is none.
        """
        task = self._by_name.get(name)
        if task is None:
            raise TaskNotFound(task=name, tasks=", ".join(sorted(self._by_name)))
        return task
