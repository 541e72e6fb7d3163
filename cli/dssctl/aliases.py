"""What a word of one's own may be, and stand for.

Invariant: a word that the tool knows keeps its meaning, whatever the configuration says.
"""

import shlex

from dss_core.errors import WrongUsage
from dssctl.near_names import near_names
from dssctl.tree import COMMAND_ALIASES, COMMANDS, VERBS


def require_free(name: str) -> None:
    """See that the tool does not know the word itself.

    Raises:
        WrongUsage: it does.
    """
    if name in {*COMMANDS, *COMMAND_ALIASES, *VERBS, "help"}:
        raise _wrong(f"'{name}' has a meaning already; an alias needs a word of its own.")


def require_begins_with_command(text: str) -> None:
    """See that what an alias stands for is a command line, as far as its first word goes.

    Raises:
        WrongUsage: it is none.
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
