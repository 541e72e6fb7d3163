"""A daemon whose wall clock was set back by a day: as ``dssd``, with its arguments."""

import sys
import time

_DAY_NS = 24 * 3_600 * 1_000_000_000
_time_ns = time.time_ns

time.time_ns = lambda: _time_ns() - _DAY_NS
time.time = lambda: time.time_ns() / 1_000_000_000

from dssd.__main__ import main  # noqa: E402 - its modules take the clock as they are loaded

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
