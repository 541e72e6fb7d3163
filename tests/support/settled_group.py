"""Waiting until a group has acknowledged all that its streams have."""

import asyncio

from dss_client import Client

PATIENCE_S = 60.0
POLL_S = 0.05


async def until_settled(client: Client, group: str, *, patience_s: float = PATIENCE_S) -> None:
    """Wait until the lag of the group is 0, so nothing comes again of what was handed out before.

    Raises:
        TimeoutError: that takes too long.
    """
    async with asyncio.timeout(patience_s):
        # What other processes acknowledge has no event here.
        while (await client.groups.describe(group)).group.lag:  # noqa: ASYNC110
            await asyncio.sleep(POLL_S)
