"""Which words may be aliases, and what they may stand for.

Invariant: a word that the tool knows keeps its meaning, whatever the configuration contains.
"""

import shlex

from dss_core.errors import WrongUsage
from dssctl.near_names import near_names
from dssctl.tree import COMMAND_ALIASES, COMMANDS, VERBS


def require_free(name: str) -> None:
    """Make sure that the word is no command of the tool.

    Raises:
        WrongUsage: it does.
    """
    if name in {*COMMANDS, *COMMAND_ALIASES, *VERBS, "help"}:
        raise _wrong(f"'{name}' has a meaning already; an alias needs a word of its own.")


def require_begins_with_command(text: str) -> None:
    """Make sure that an alias stands for a command line, by its first word.

    Raises:
        WrongUsage: it does not.
    """
    try:
        words = shlex.split(text)
    except ValueError as broken:
        raise _wrong(f"'{text}' is no command line: {broken}.") from broken
    if not words:
        raise _wrong("an alias stands for a command: 'groups ls --sort lag' for one.")
    if words[0] not in {*COMMANDS, *COMMAND_ALIASES}:
        near = " or ".join(near_names(words[0], COMMANDS))
        meant = f" Did you mean {near}?" if near else ""
        raise _wrong(f"there is no command '{words[0]}'.{meant}")


def _wrong(reason: str) -> WrongUsage:
    return WrongUsage(reason=reason, command="dssctl config set")
