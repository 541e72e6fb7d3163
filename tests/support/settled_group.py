"""Waiting until a group has acknowledged all records of its streams."""

import asyncio

from dss_client import Client

PATIENCE_S = 60.0
POLL_S = 0.05


async def until_settled(client: Client, group: str, *, patience_s: float = PATIENCE_S) -> None:
    """Wait until the lag of the group is 0, so none of the records handed out before comes again.

    Raises:
        TimeoutError: that takes too long.
    """
    async with asyncio.timeout(patience_s):
        # No event here tells what other processes acknowledge.
        while (await client.groups.describe(group)).group.lag:  # noqa: ASYNC110
            await asyncio.sleep(POLL_S)
