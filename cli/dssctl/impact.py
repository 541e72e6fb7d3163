"""What a command does to the daemon, and whether the context lets it.

Invariant: a command that changes something passes here before it talks to anybody.
"""

from enum import StrEnum

from dss_core.errors import ContextReadOnly, ReasonNeeded
from dssctl.settings import Settings


class Impact(StrEnum):
    """Of one command, as a program that reads the command tree sees it."""

    READ = "read"
    WRITE = "write"
    DESTRUCTIVE = "destructive"
    """What it takes away, no command brings back."""


def require_may_change(settings: Settings, command: str) -> None:
    """Make sure that things may be changed in this context.

    Raises:
        ContextReadOnly: they may not.
    """
    if settings.read_only:
        raise ContextReadOnly(command=command, where="this invocation")
    context = settings.context
    if context is not None and context.read_only:
        raise ContextReadOnly(command=command, where=f"the context {context.read_only}")


def require_reason(settings: Settings, command: str) -> None:
    """Make sure that a change in a protected context says why.

    Raises:
        ReasonNeeded: it does not.
    """
    context = settings.context
    if context is not None and context.protected and not settings.change.reason.strip():
        raise ReasonNeeded(command=command, context=context.protected)
