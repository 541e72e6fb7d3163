"""Running one command line to its exit code.

Commands return nothing and raise conditions; here each becomes an exit code and a report.
(`return typer.Exit(1)` would exit 0 in silence, so a returned value is a programmer error.)
A broken pipe means that the reader has seen enough: no message, and the shell's own exit code for
it.
"""

import sys
from collections.abc import Sequence

import typer

from dss_core.errors import DssError, ExitCode, OutputUnwritable, WrongUsage
from dssctl.failures import exit_code_for, report
from dssctl.global_options import HelpJsonWanted
from dssctl.output.checked import checked_output, give_up
from dssctl.settings import Settings
from dssctl.tree import root


def run(arguments: Sequence[str]) -> int:
    """Parse, run, report, and return the exit code."""
    settings = Settings()
    out = sys.stdout
    with checked_output(out):
        try:
            exit_code = _invoked(arguments, settings)
            sys.stdout.flush()
        except BrokenPipeError:
            exit_code = ExitCode.PIPE_CLOSED
        except OutputUnwritable as failure:
            report(failure, settings)
            exit_code = failure.exit_code
        else:
            return exit_code
    give_up(out)
    return exit_code


def _report_broken(unexpected: Exception, settings: Settings) -> int:
    """Report an error of ours without its traceback, if that can be stored in a file."""
    from dssctl.broken import condition_of

    try:
        failure = condition_of(unexpected)
    except OSError:
        raise unexpected from None
    report(failure, settings)
    return failure.exit_code


def _invoked(arguments: Sequence[str], settings: Settings) -> int:
    try:
        _require_text(arguments)
        with root().make_context("dssctl", list(arguments), obj=settings) as context:
            returned = context.command.invoke(context)
    except typer.Exit as requested:
        return requested.exit_code
    except HelpJsonWanted as wanted:
        from dssctl.help_json import help_json  # it imports every command

        sys.stdout.write(help_json(wanted.words) + "\n")
        return ExitCode.OK
    except (OutputUnwritable, BrokenPipeError):
        raise
    except (DssError, typer.TyperException, KeyboardInterrupt) as failure:
        sys.stdout.flush()
        report(failure, settings)
        return exit_code_for(failure)
    except Exception as unexpected:  # noqa: BLE001 - told, with its traceback in a file
        return _report_broken(unexpected, settings)
    assert returned is None, f"a command returned {returned!r}; it must raise instead"
    return ExitCode.OK


def _require_text(arguments: Sequence[str]) -> None:
    """Names, keys and subjects are UTF-8; a shell passes on any bytes.

    Raises:
        WrongUsage: an argument is not UTF-8.
    """
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError as broken:
            reason = f"{argument.encode(errors='surrogateescape')!r} is not UTF-8."
            raise WrongUsage(reason=reason, command="dssctl") from broken
