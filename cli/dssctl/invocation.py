"""Running one command line to its exit code.

Commands return nothing and raise conditions; here each becomes an exit code and a report.
(`return typer.Exit(1)` would exit 0 in silence, so a returned value is a programmer error.)
A broken pipe means that the reader has enough: no message, and the shell's own exit code for it.
"""

import os
import sys
from collections.abc import Sequence

import typer

from dss_core.errors import DssError, ExitCode
from dssctl.failures import exit_code_for, report
from dssctl.settings import Settings
from dssctl.tree import root


def run(arguments: Sequence[str]) -> int:
    """Parse, run, report, and return the exit code."""
    settings = Settings()
    try:
        _invoke(arguments, settings)
        sys.stdout.flush()
    except typer.Exit as requested:
        return requested.exit_code
    except (DssError, typer.TyperException, KeyboardInterrupt) as failure:
        return _failed(failure, settings)
    except BrokenPipeError:
        return _pipe_closed()
    return ExitCode.OK


def _invoke(arguments: Sequence[str], settings: Settings) -> None:
    with root().make_context("dssctl", list(arguments), obj=settings) as context:
        returned = context.command.invoke(context)
    assert returned is None, f"a command returned {returned!r}; it must raise instead"


def _failed(failure: BaseException, settings: Settings) -> int:
    try:
        sys.stdout.flush()
        report(failure, settings)
    except BrokenPipeError:
        return _pipe_closed()
    return exit_code_for(failure)


def _pipe_closed() -> int:
    # What is still buffered would raise again when the interpreter flushes on its way out.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return ExitCode.PIPE_CLOSED
