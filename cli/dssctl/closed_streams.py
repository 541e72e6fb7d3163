"""Standard streams that were closed when this process was started.

Python has None in their place, and the next file or socket that is opened gets their number.
Invariant: afterwards each of the three exists: nothing can be read, notes to people go nowhere, and
data that nobody can take is an error, as on a full disk.
"""

import os
import sys


def stand_in() -> None:
    """Open a substitute for each that is closed."""
    if sys.stdin is None:
        _open(0, os.O_RDONLY)
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - for good
    if sys.stdout is None:
        # For reading only, so that a write to it fails.
        _open(1, os.O_RDONLY)
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - for good
    if sys.stderr is None:
        _open(2, os.O_WRONLY)
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - for good


def _open(number: int, flags: int) -> None:
    opened = os.open(os.devnull, flags)
    if opened != number:
        os.dup2(opened, number)
        os.close(opened)
    os.set_inheritable(number, True)  # as the others are
