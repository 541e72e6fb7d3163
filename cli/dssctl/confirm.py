"""Asking before something is changed.

Invariant: a question is asked of a person at a terminal or not at all; a script is told which
flag it lacks instead of hanging.
"""

import sys

from dss_core.errors import ConfirmationNeeded, Declined
from dssctl.output.escape import escaped
from dssctl.settings import Settings


def confirm(settings: Settings, action: str, *, confirmed: bool) -> None:
    """Ask whether to go ahead, unless that was said beforehand.

    Raises:
        ConfirmationNeeded: nobody can be asked.
        Declined: the answer was no.
    """
    if confirmed:
        return
    require_somebody(settings, action)
    sys.stderr.write(f"{escaped(action)}: go ahead? [y/N] ")
    sys.stderr.flush()
    answer = sys.stdin.readline()
    if not answer.endswith("\n"):
        sys.stderr.write("\n")
    if answer.strip().lower() not in {"y", "yes"}:
        raise Declined(action=action)


def require_somebody(settings: Settings, action: str) -> None:
    """Make sure that there is a person to ask.

    Raises:
        ConfirmationNeeded: there is none.
    """
    if not _can_ask(settings):
        raise ConfirmationNeeded(action=action, flag="--yes")


def _can_ask(settings: Settings) -> bool:
    at_terminal = sys.stdin.isatty() and sys.stderr.isatty()
    return at_terminal and settings.may_ask and not settings.machine_readable
