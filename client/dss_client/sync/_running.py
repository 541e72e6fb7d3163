"""Running a program's main function, which takes records in threads.

Invariant: everything that the function opened is closed before the process ends, unless it hangs.
"""

import threading
from collections.abc import Callable
from typing import TypeVar

from dss_client._signals import Signals
from dss_client.limits import GRACE_S

Result = TypeVar("Result")


def run(main: Callable[[], Result], *, grace: float = GRACE_S) -> Result:
    """Call it as the program: it ends in peace on SIGTERM and Ctrl-C, as under `dss_client.run`.

    Where that cancels, `SystemExit` is raised here in the main thread.

    Raises:
        SystemExit: it was ended.
    """

    def end() -> None:
        if threading.current_thread() is threading.main_thread():
            raise SystemExit(signals.exit_code)
        signals.end_in_main_thread()

    with Signals(grace, end) as signals:
        return main()
