"""Memory that a rush took goes back to the system."""

import asyncio
import sys
from pathlib import Path

PROGRAM = Path(__file__).parents[1] / "scenarios" / "programs" / "rush_of_memory.py"


async def test_pages_that_are_free_at_two_looks_are_given_back() -> None:
    # In a process of its own: what other tests left in this one is not known.
    program = await asyncio.create_subprocess_exec(
        sys.executable, str(PROGRAM), stdout=asyncio.subprocess.PIPE
    )
    printed, _ = await program.communicate()
    before, first, second = map(int, printed.split())
    assert first > before + 256
    assert second < before + 64
