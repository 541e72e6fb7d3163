"""Finds the condition in an exception group, unless the group has a programmer's error."""

from dss_core.errors import DssError

EXIT_SOFTWARE = 70
"""Exit code after a programmer's error."""


def condition_in(error: BaseException) -> DssError | None:
    """The first condition in an error that consists of conditions only; else None."""
    if isinstance(error, DssError):
        return error
    if not isinstance(error, BaseExceptionGroup):
        return None
    conditions = [condition_in(part) for part in error.exceptions]
    return None if None in conditions else conditions[0]


def explained(error: DssError) -> str:
    """The text on stderr about the condition that ended the daemon."""
    hint = f"\n  {error.hint_text}" if error.hint_text else ""
    return f"dssd: {error.message} [{error.code}]{hint}\n"
