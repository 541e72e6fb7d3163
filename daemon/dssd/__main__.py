"""The command ``dssd``: reads the command line, runs a daemon or a check, turns the end of it into
an exit code.

Exit codes: 0 stopped as told, or all is whole; 1 a check found damage; 2 usage; 70 an unexpected
error, with its traceback; 74 the disk or the store failed; 75 another daemon holds the data
directory; 78 the configuration, or a data directory of a newer version.
"""

import argparse
import gc
import os
import shutil
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path

from dss_core.errors import DssError, ExitCode
from dssd.exception_groups import EXIT_SOFTWARE, condition_in
from dssd.grpc_log import silence

_TEMPORARY_PREFIX = "dssd-"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    parsed = _parser().parse_args(arguments)
    if parsed.command == "version":
        from dssd.version import version

        sys.stdout.write(f"dssd {version()}\n")
        return ExitCode.OK
    try:
        return _run(parsed)
    except DssError as error:
        return _explain(error)
    except BaseExceptionGroup as group:
        condition = condition_in(group)
        if condition is not None:
            return _explain(condition)
        traceback.print_exception(group)
        return EXIT_SOFTWARE
    except Exception:  # noqa: BLE001 - the last frame: whatever it is, the traceback tells
        traceback.print_exc()
        return EXIT_SOFTWARE


def _run(parsed: argparse.Namespace) -> int:
    if parsed.command == "check":
        return _check(parsed)
    return _serve_dev(parsed) if parsed.dev else _serve(parsed, parsed.data_dir)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dssd", description="The daemon of DSS: durable shared subscriptions."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    serve = commands.add_parser("serve", help="run a daemon until SIGTERM or SIGINT")
    place = serve.add_mutually_exclusive_group()
    place.add_argument(
        "--data-dir",
        type=Path,
        metavar="DIR",
        help="where everything is kept (default: $XDG_STATE_HOME/dssd or ~/.local/state/dssd)",
    )
    place.add_argument(
        "--dev",
        action="store_true",
        help="keep everything in a temporary directory, removed at exit",
    )
    serve.add_argument(
        "--listen",
        action="append",
        default=[],
        metavar="unix:PATH|HOST:PORT",
        help="where to listen; may be repeated (default: dssd.sock in the data directory)",
    )
    serve.add_argument("--config", type=Path, metavar="FILE.toml", help="data_dir and listen")
    _add_check(commands)
    commands.add_parser("version", help="print the version")
    return parser


def _add_check(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    check = commands.add_parser(
        "check",
        help="say whether a data directory is whole, while no daemon runs on it",
        description="Say whether what lies in a data directory is whole. Nothing is changed.",
    )
    check.add_argument(
        "--data-dir",
        type=Path,
        metavar="DIR",
        help="the directory (default: $XDG_STATE_HOME/dssd or ~/.local/state/dssd)",
    )
    check.add_argument("--deep", action="store_true", help="read all bytes of the log, and more")
    check.add_argument(
        "-o", "--output", choices=("text", "json"), default="text", help="how to print findings"
    )


def _check(parsed: argparse.Namespace) -> int:
    from dssd.check.command import check
    from dssd.config import default_data_dir

    directory = parsed.data_dir or default_data_dir(os.environ)
    return check(directory, deep=parsed.deep, as_json=parsed.output == "json")


def _serve_dev(parsed: argparse.Namespace) -> int:
    directory = Path(tempfile.mkdtemp(prefix=_TEMPORARY_PREFIX))
    try:
        return _serve(parsed, directory / "data", temporary=directory)
    finally:
        shutil.rmtree(directory)


def _serve(
    parsed: argparse.Namespace, data_dir: Path | None, *, temporary: Path | None = None
) -> int:
    silence()
    gc.disable()  # What is loaded stays: to look for dead cycles in it takes a twelfth of a start.
    try:
        from dssd.config import configure
        from dssd.process import serve
    finally:
        gc.enable()

    config = configure(
        data_dir=data_dir, listen=parsed.listen, file=parsed.config, environment=os.environ
    )
    serve(config, temporary=temporary)
    return ExitCode.OK


def _explain(error: DssError) -> int:
    hint = f"\n  {error.hint_text}" if error.hint_text else ""
    sys.stderr.write(f"dssd: {error.message} [{error.code}]{hint}\n")
    return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
