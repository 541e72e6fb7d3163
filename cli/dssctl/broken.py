"""What happens with an unexpected error: its traceback goes to a file, and it becomes a condition.

Invariant: a user reads a sentence with a code and a path; the traceback is for whoever repairs the
tool. Neither arguments nor values of variables are kept, because they may be secret.
"""

import os
import sys
import time
import traceback
from pathlib import Path

from dss_core.errors import ToolFailed
from dssctl import VERSION

FAILURES_KEPT = 20
"""How many files with tracebacks of unexpected errors are kept; the oldest go first."""


def condition_of(failure: Exception) -> ToolFailed:
    """The condition to report, once the traceback is in a file.

    Raises:
        OSError: no file can be written.
    """
    path = _folder() / f"failure-{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{os.getpid()}.log"
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _forget_old(path.parent)
    told = "".join(traceback.format_exception(failure))
    path.write_text(f"dssctl {VERSION}, Python {sys.version}\n\n{told}", encoding="utf-8")
    path.chmod(0o600)
    return ToolFailed(error=type(failure).__name__, reason=_line(failure), path=path)


def _folder() -> Path:
    from platformdirs import user_state_path

    return user_state_path("dssctl", appauthor=False) / "failures"


def _forget_old(folder: Path) -> None:
    for old in sorted(folder.glob("failure-*.log"))[: -FAILURES_KEPT + 1]:
        old.unlink(missing_ok=True)


def _line(failure: Exception) -> str:
    return " ".join(str(failure).split()) or "it says no more"
