"""Arguments of tasks, as options take them."""

from collections.abc import Sequence

import typer

ARGUMENT_HELP = "An argument of the task, repeatable; see dssctl tasks ls -o wide."


def given_arguments(written: Sequence[str] | None) -> dict[str, str]:
    """NAME=VALUE, each name once."""
    given: dict[str, str] = {}
    for each in written or ():
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise typer.BadParameter(f"'{each}' is no argument; write NAME=VALUE.")
        if name in given:
            raise typer.BadParameter(f"the argument {name} is given twice.")
        given[name] = value
    return given
