"""``python scripts/test_twice.py --jobs N``: the tests, and the few that failed once more, alone.

A test run keeps all cores busy with tests of real processes, on a machine that others share. A
test that fails there and passes three times alone is flaky: that is told, to be mended, and holds
up nothing else. Invariant: a test that fails again fails the run, and so do more failures than a
busy machine explains, or a run that ended before its tests did.
"""

import json
import subprocess
import sys
from pathlib import Path

FAILED = Path(".pytest_cache/v/cache/lastfailed")
FLAKY_MAX = 4
TIMES = 3
PYTEST = (sys.executable, "-m", "pytest")
TESTS_FAILED = 1
"""What pytest ends with where all tests ran and some failed."""


def main() -> int:
    """0 where each test passes, or passes alone each time."""
    FAILED.unlink(missing_ok=True)
    ended = subprocess.run([*PYTEST, *sys.argv[1:]], check=False).returncode
    return again() if ended == TESTS_FAILED else ended


def again() -> int:
    """Run what failed alone; 0 where it passes each time."""
    failed = sorted(json.loads(FAILED.read_text()))
    if len(failed) > FLAKY_MAX:
        sys.stderr.write(f"{len(failed)} tests failed; only {FLAKY_MAX} are run again\n")
        return TESTS_FAILED
    for _ in range(TIMES):
        ended = subprocess.run([*PYTEST, "-p", "no:cacheprovider", *failed], check=False).returncode
        if ended:
            return ended
    for name in failed:
        sys.stderr.write(f"FLAKY, passes alone: {name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
