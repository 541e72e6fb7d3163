"""The program ``dssctl``: what the console script calls.

Invariant: this module owns the exit code, and ``version`` is answered before anything slow is
imported.
"""

import sys

from dssctl import VERSION


def main() -> int:
    """Run one command line and return its exit code."""
    if sys.argv[1:] in (["version"], ["--version"]):
        sys.stdout.write(f"dssctl {VERSION}\n")
        return 0
    try:
        from dssctl.invocation import run

        return run(sys.argv[1:])
    except KeyboardInterrupt:
        # Too early or too late for a command to have noticed.
        return 130
