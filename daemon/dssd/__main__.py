"""The command ``dssd``: runs a command line and turns its outcome into an exit code.

Exit codes: 0 stopped in order, or no damage; 1 a check found damage; 2 usage; 70 an unexpected
error, with its traceback; 74 the disk or the store failed; 75 another daemon holds the data
directory; 78 the configuration, or a data directory of a newer version.
"""

import os
import sys
import traceback
from collections.abc import Sequence

from dss_core.errors import DssError, ExitCode
from dssd.exception_groups import EXIT_SOFTWARE, condition_in, explained
from dssd.loading import loading

_STDERR = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    _open_standard_streams()
    try:
        with loading():
            from dssd.command_line import run
        return run(words)
    except DssError as error:
        return _explain(error)
    except BaseExceptionGroup as group:
        condition = condition_in(group)
        if condition is not None:
            return _explain(condition)
        traceback.print_exception(group)
        return EXIT_SOFTWARE
    except BrokenPipeError:
        return ExitCode.PIPE_CLOSED
    except Exception:  # noqa: BLE001 - the last frame: whatever it is, the traceback tells
        traceback.print_exc()
        return EXIT_SOFTWARE


def _open_standard_streams() -> None:
    """Give the numbers of those that whoever started this has closed to nobody else.

    A file of the log that got the one of stderr would be written to by whatever tells an error.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= _STDERR:
        pass
    os.close(descriptor)
    if sys.stderr is None:
        sys.stderr = os.fdopen(_STDERR, "w", closefd=False)


def _explain(error: DssError) -> int:
    sys.stderr.write(explained(error))
    return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
