"""The program ``dssctl``: what the console script calls.

Invariant: this module decides the exit code, and answers ``version``, ``--help`` and the shell's
questions for names before anything slow is imported.
"""

import gc
import sys

from dssctl import VERSION

OBJECTS_BEFORE_COLLECTION = 100_000
"""How many new objects start a garbage collection. What a command loads stays until it ends, but
Python's default would scan it again and again."""


def main() -> int:
    """Run one command line and return its exit code."""
    if None in (sys.stdin, sys.stdout, sys.stderr):
        from dssctl.closed_streams import stand_in

        stand_in()
    arguments = sys.argv[1:]
    if arguments[:1] == ["__complete"]:
        from dssctl.completing.answering import answer

        return answer(arguments[1:])
    if arguments in (["version"], ["--version"]):
        if _written(f"dssctl {VERSION}\n"):
            return 0
        arguments = ["version"]
    if arguments[:1] == ["help"]:
        arguments = [*arguments[1:], "--help"]
    if arguments in (["--help"], ["-h"]):
        from dssctl.ready_help import ready_help

        text = ready_help()
        if text and _written(text):
            return 0
    gc.set_threshold(OBJECTS_BEFORE_COLLECTION)
    try:
        from dssctl.invocation import run

        return run(arguments)
    except KeyboardInterrupt:
        # An interrupt too early or too late for a command to notice.
        return 130


def _written(text: str) -> bool:
    """Whether standard output took it; if not, the slow path reports why."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError:
        return False
    return True
