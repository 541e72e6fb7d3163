"""What a command does to the daemon, and whether the context allows it.

Invariant: a command that changes something passes here before it calls anybody.
"""

from enum import StrEnum

from dss_core.errors import ContextReadOnly, ReasonNeeded
from dssctl.settings import Settings


class Impact(StrEnum):
    """A command's impact, for programs that read the command tree."""

    READ = "read"
    WRITE = "write"
    DESTRUCTIVE = "destructive"
    """No command brings back what it takes away."""


def require_may_change(settings: Settings, command: str) -> None:
    """Make sure that this context allows changes.

    Raises:
        ContextReadOnly: it does not.
    """
    if settings.read_only:
        raise ContextReadOnly(command=command, where="this invocation")
    context = settings.context
    if context is not None and context.read_only:
        raise ContextReadOnly(command=command, where=f"the context {context.read_only}")


def require_reason(settings: Settings, command: str) -> None:
    """Make sure that a change in a protected context has a reason.

    Raises:
        ReasonNeeded: it has none.
    """
    context = settings.context
    if context is not None and context.protected and not settings.change.reason.strip():
        raise ReasonNeeded(command=command, context=context.protected)
