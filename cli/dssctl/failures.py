"""What a failure means to the caller: one exit code, and one report on stderr.

Invariant: `exit_code_for` is the only place that maps a failure to an exit code, and the registry
in `dss_core.errors` the only place that knows the codes.
"""

import json
import sys

import typer

from dss_core.errors import DssError, ExitCode, WrongUsage
from dssctl.output.escape import escaped, escaped_in_json
from dssctl.output.model import API_VERSION
from dssctl.settings import Settings


def exit_code_for(failure: BaseException) -> ExitCode:
    """The exit code that a failure ends the process with."""
    match failure:
        case DssError():
            return failure.exit_code
        case typer.TyperException():
            return ExitCode(failure.exit_code)
        case KeyboardInterrupt():
            return ExitCode.INTERRUPTED
        case BrokenPipeError():
            return ExitCode.PIPE_CLOSED
        case _:
            return ExitCode.FAILED


def report(failure: BaseException, settings: Settings) -> None:
    """Report on stderr what happened and what to do; as JSON if a program reads stderr."""
    if isinstance(failure, KeyboardInterrupt):
        return
    if _is_request_for_help(failure):
        sys.stderr.write(f"{failure}\n")
        return
    condition = failure if isinstance(failure, DssError) else _wrong_usage(failure)
    if settings.machine_readable:
        sys.stderr.write(_as_json(condition) + "\n")
        return
    label = f"error {condition.code}:"
    if settings.coloured(sys.stderr):
        label = f"\x1b[1;31m{label}\x1b[0m"
    sys.stderr.write(f"{label} {escaped(condition.message)}\n")
    if hint := _hint_of(condition):
        sys.stderr.write(f"hint: {escaped(hint)}\n")


def _is_request_for_help(failure: BaseException) -> bool:
    """Whether a noun was named without a verb: then the message is the help text."""
    return isinstance(failure, typer.TyperException) and "\n" in failure.format_message()


def _wrong_usage(failure: BaseException) -> DssError:
    context = getattr(failure, "ctx", None)
    command = context.command_path if context is not None else "dssctl"
    if isinstance(failure, typer.BadParameter):
        failure.message = _in_our_words(failure)
    reason = failure.format_message() if isinstance(failure, typer.TyperException) else str(failure)
    if reason.startswith(_TOO_MANY):
        too_many = reason.partition(" (")[2].removesuffix(")")
        reason = f"there is no place for '{too_many}': the command takes fewer arguments."
    return WrongUsage(reason=reason, command=command)


def _in_our_words(failure: typer.BadParameter) -> str:
    """What is wrong with a number, and which are allowed; any other message unchanged."""
    taken = getattr(failure.param, "type", None)
    what = _NUMBERS.get(str(getattr(taken, "name", "")))
    text, wrong, _ = failure.message.partition(" is not ")
    if what is None or not wrong:
        return failure.message
    least, most = getattr(taken, "min", None), getattr(taken, "max", None)
    from_on = "" if least is None else f" from {least}" + (" on" if most is None else "")
    to = "" if most is None else f" {'up ' if least is None else ''}to {most}"
    return f"'{text.strip(chr(39))}' is no {what}{from_on}{to}."


_TOO_MANY = "Got unexpected extra argument"
"""The beginning of the parser's message."""
_NUMBERS = {
    "integer": "whole number",
    "int range": "whole number",
    "integer range": "whole number",
    "float": "number",
    "float range": "number",
}
"""By the parser's name of a type."""


def _hint_of(condition: DssError) -> str:
    """What to do next, after similar names."""
    return " ".join([*getattr(condition, "__notes__", ()), condition.hint_text]).strip()


def _as_json(condition: DssError) -> str:
    document = {
        "apiVersion": API_VERSION,
        "kind": "Error",
        "code": condition.code,
        "message": condition.message,
        "hint": _hint_of(condition),
        "fields": condition.fields,
        "definite": condition.definite,
    }
    return escaped_in_json(json.dumps(document, ensure_ascii=False))
