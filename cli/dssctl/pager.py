"""Output that does not fit the terminal goes to a pager.

Invariant: a pipe, a file and a program that reads a format get the text itself; output from before
a failure is shown before the failure is reported.
"""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress

from dssctl.output import note
from dssctl.screen import Drawn
from dssctl.settings import Format, Settings

LESS = {"LESS": "FRX"}
"""The options with which git calls less: keep colours, keep the screen, end if all of it fits."""


@contextmanager
def paged(settings: Settings) -> Iterator[None]:
    """Show what is printed inside by a pager, if a person looks and it is long."""
    if not _somebody_looks(settings):
        yield
        return
    text = Drawn()
    try:
        with redirect_stdout(text):
            yield
    finally:
        show(settings, text.getvalue())


def show(settings: Settings, text: str) -> None:
    """Print a text, by a pager if it is long and a person looks."""
    fits = text.count("\n") < shutil.get_terminal_size().lines
    command = [] if fits or not _somebody_looks(settings) else pager(settings)
    if not command or not _shown_by(command, text, settings):
        sys.stdout.write(text)
        sys.stdout.flush()


def pager(settings: Settings) -> list[str]:
    """The command that shows a long text; nothing where none is wanted, or none is there."""
    wanted = settings.pager if settings.pager is not None else os.environ.get("PAGER")
    if wanted is None:
        wanted = "less" if shutil.which("less") else ""
    words: list[str] = []
    with suppress(ValueError):  # an open quote
        words = shlex.split(wanted)
    return [] if words in ([], ["cat"]) else words


def _somebody_looks(settings: Settings) -> bool:
    plain = os.environ.get("TERM", "dumb") == "dumb"
    return settings.format in {Format.TABLE, Format.WIDE} and sys.stdout.isatty() and not plain


def _shown_by(command: Sequence[str], text: str, settings: Settings) -> bool:
    try:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, env={**LESS, **os.environ})
    except OSError as failed:
        note(settings, f"the pager {command[0]} cannot be run: {failed.strerror}")
        return False
    assert process.stdin is not None
    # The reader has seen enough and closed the pager.
    with suppress(BrokenPipeError), process.stdin as pipe:
        pipe.write(text.encode(errors="surrogateescape"))
    _await(process)
    return True


def _await(process: "subprocess.Popen[bytes]") -> None:
    """Leave Ctrl-C to the pager: in some it stops a search."""
    while True:
        with suppress(KeyboardInterrupt):
            process.wait()
            return
