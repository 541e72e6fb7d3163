"""The help of the whole program, written beforehand by `scripts/gen_help.py`.

Invariant: it is byte for byte what Typer writes at the same width, or there is none. It must not
import anything: Typer alone takes longer than all the rest.
"""

import os
import sys

WIDTHS = (80, 100)
"""In columns: what a pipe and most terminals have, and what no help is wider than."""


def ready_help() -> str:
    """The help at the width of this terminal; empty if none was written for that width."""
    columns = min(_columns(), WIDTHS[-1])
    if columns not in WIDTHS:
        return ""
    folder = os.path.dirname(__file__)  # noqa: PTH120 - pathlib would be imported
    path = f"{folder}/help/{file_for(columns)}"
    try:
        with open(path, encoding="utf-8") as page:  # noqa: PTH123 - pathlib would be imported
            return page.read()
    except OSError:
        return ""


def file_for(columns: int) -> str:
    """Where the help for a width lies."""
    return f"{columns}.txt"


def _columns() -> int:
    """As `shutil.get_terminal_size` has it, whose import takes longer than the answer."""
    try:
        named = int(os.environ["COLUMNS"])
    except (KeyError, ValueError):
        named = 0
    if named > 0:
        return named
    shown = sys.__stdout__
    if shown is None:
        return WIDTHS[0]
    try:
        return os.get_terminal_size(shown.fileno()).columns or WIDTHS[0]
    except (ValueError, OSError):
        return WIDTHS[0]
