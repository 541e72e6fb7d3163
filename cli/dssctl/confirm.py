"""Asking before something is changed.

Invariant: a question is asked of a person at a terminal or not at all; a script is told which flag
it lacks instead of hanging. In a protected context a name must be typed; a yes is not enough.
"""

import sys

from dss_core.errors import ConfirmationNeeded, Declined, NameNotConfirmed
from dssctl.output.escape import escaped
from dssctl.settings import Settings


def confirm(settings: Settings, action: str, name: str, *, confirmed: bool) -> None:
    """Ask whether to go ahead with the change of this name, unless a flag has already agreed.

    Raises:
        ConfirmationNeeded: nobody can be asked.
        Declined: the answer was no.
        NameNotConfirmed: another name was typed.
    """
    if protected(settings) or settings.change.confirm_name is not None:
        _confirm_name(settings, action, name)
    elif not confirmed:
        _confirm_by_yes(settings, action)


def confirm_name_if_protected(settings: Settings, action: str, name: str) -> None:
    """Ask for the name in a protected context; elsewhere nothing is asked.

    Raises:
        ConfirmationNeeded, NameNotConfirmed: as for `confirm`.
    """
    if protected(settings):
        _confirm_name(settings, action, name)


def require_somebody(settings: Settings, action: str) -> None:
    """Make sure that there is a person to ask, or no need to ask.

    Raises:
        ConfirmationNeeded: there is nobody.
    """
    if settings.change.confirm_name is not None or _can_ask(settings):
        return
    if protected(settings):
        raise ConfirmationNeeded(action=action, flag="--confirm with the name")
    if not settings.change.confirmed:
        raise ConfirmationNeeded(action=action, flag="--yes")


def protected(settings: Settings) -> bool:
    """Whether the context wants names typed."""
    return settings.context is not None and bool(settings.context.protected)


def _confirm_by_yes(settings: Settings, action: str) -> None:
    if not _can_ask(settings):
        raise ConfirmationNeeded(action=action, flag="--yes")
    if _answer(f"{action}: go ahead? [y/N] ").lower() not in {"y", "yes"}:
        raise Declined(action=action)


def _confirm_name(settings: Settings, action: str, name: str) -> None:
    typed = settings.change.confirm_name
    if typed is None:
        if not _can_ask(settings):
            raise ConfirmationNeeded(action=action, flag=f"--confirm {name}")
        typed = _answer(f"{action}. Type {name} to go ahead: ")
    if typed not in _spellings(name):
        raise NameNotConfirmed(action=action, typed=typed, name=name)


def _spellings(name: str) -> set[str]:
    """The accepted names: a group may be typed with its filter or without."""
    return {name, name.partition("@")[0]} - {""}


def _answer(question: str) -> str:
    sys.stderr.write(escaped(question))
    sys.stderr.flush()
    answer = sys.stdin.readline()
    if not answer.endswith("\n"):
        sys.stderr.write("\n")
    return answer.strip()


def _can_ask(settings: Settings) -> bool:
    at_terminal = sys.stdin.isatty() and sys.stderr.isatty()
    return at_terminal and settings.may_ask and not settings.machine_readable
