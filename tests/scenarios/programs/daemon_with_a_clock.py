"""A daemon whose wall clock is set by a file: DSS_TEST_CLOCK names it, and has milliseconds ahead.

It looks at the clock more often than a real one, so that a test need not wait for that.
"""

import os
import sys
from pathlib import Path

from dssd import clock
from dssd.__main__ import main
from dssd.schedules import schedules

REAL = clock.Clock
AHEAD = Path(os.environ["DSS_TEST_CLOCK"])


class SetClock(REAL):
    """The machine's, and a wall clock that a test sets."""

    __slots__ = ()

    def wall_ms(self) -> int:
        return super().wall_ms() + int(AHEAD.read_text())

    def wall_us(self) -> int:
        return super().wall_us() + int(AHEAD.read_text()) * 1_000


if __name__ == "__main__":
    vars(schedules)["SCHEDULE_LOOK_S"] = 0.05
    for name, module in list(sys.modules.items()):
        if name.startswith("dssd") and getattr(module, "Clock", None) is REAL:
            module.Clock = SetClock  # type: ignore[attr-defined] # where it is made
    sys.exit(main())
