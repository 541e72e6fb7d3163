"""The example of a moved program: both sides of the diff in the page do the same."""

import asyncio
import os
import sys

from support.nats_oracle import nats_server
from support.page_blocks import blocks


def sides() -> tuple[str, str]:
    """The program before, and after."""
    [diff] = blocks("docs/jetstream.md", "diff")
    lines = diff.text.splitlines()
    before = [each[1:] for each in lines if not each.startswith("+")]
    after = [each[1:] for each in lines if not each.startswith("-")]
    return "\n".join(before), "\n".join(after)


async def printed(program: str, server: str) -> str:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program,
        env=os.environ | {"SERVER": server}, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        async with asyncio.timeout(60):
            said, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0
    return said.decode()


async def test_a_program_prints_the_same_before_and_after_it_was_moved(endpoint: str) -> None:
    before, after = sides()
    async with nats_server() as address:
        theirs, ours = await asyncio.gather(printed(before, address), printed(after, endpoint))
    assert theirs == ours
    assert theirs.count("\n") == 6 + 6 + 4 + 2
