"""Finds the condition in an exception group, or says that it has a programmer's error."""

from dss_core.errors import DssError

EXIT_SOFTWARE = 70
"""How a process ends that met a programmer's error, after its traceback."""


def condition_in(error: BaseException) -> DssError | None:
    """The first condition in an error that consists of conditions only; else None."""
    if isinstance(error, DssError):
        return error
    if not isinstance(error, BaseExceptionGroup):
        return None
    conditions = [condition_in(part) for part in error.exceptions]
    return None if None in conditions else conditions[0]


def explained(error: DssError) -> str:
    """What whoever started the daemon reads of the condition that ended it."""
    hint = f"\n  {error.hint_text}" if error.hint_text else ""
    return f"dssd: {error.message} [{error.code}]{hint}\n"
