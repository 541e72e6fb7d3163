"""Continues after the daemon was away for a while.

Invariant: a repeated request changes nothing in the daemon, and no record is given twice.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import TypeVar

import pyarrow as pa

from dss_client import Client
from dss_client.job_values import SourceRange
from dss_core.errors import OutcomeUnknown, Stopping, Unreachable
from dss_spark.source.limits import AWAY_S
from dss_spark.source.options import SourceOptions
from dss_spark.source.slices import Slice

AGAIN_S = 0.5
"""The pause between two attempts to reach it."""


Answer = TypeVar("Answer")

_AWAY = (OutcomeUnknown, Stopping, Unreachable)

Tables = AsyncGenerator[tuple[str, pa.Table], None]
"""Streams and their records."""


class _Patience:
    """Waits between attempts, and gives up when they have failed for too long."""

    def __init__(self) -> None:
        self._until_s = 0.0
        self.came()

    def came(self) -> None:
        """The daemon has answered."""
        self._until_s = asyncio.get_running_loop().time() + AWAY_S

    async def rest(self, error: Exception) -> None:
        """Wait a while.

        Raises:
            Exception: the error, if it has been away for too long.
        """
        if asyncio.get_running_loop().time() >= self._until_s:
            raise error
        await asyncio.sleep(AGAIN_S)


async def asked(options: SourceOptions, ask: Callable[[Client], Awaitable[Answer]]) -> Answer:
    """The daemon's answer.

    Raises:
        DssError: it refuses, or is away for too long.
    """
    patience = _Patience()
    while True:
        try:
            async with options.client() as client:
                return await ask(client)
        except _AWAY as error:
            await patience.rest(error)


async def all_tables(slice_: Slice, read: Callable[[Slice], Tables]) -> Tables:
    """The tables of a slice, in their order, each record once.

    Raises:
        DssError: the daemon refuses, or is away for too long.
    """
    left = slice_
    patience = _Patience()
    while left:
        try:
            async with aclosing(read(left)) as tables:
                async for stream, table in tables:
                    patience.came()
                    if table.num_rows:
                        # Noted before it is given, because the taker may never return.
                        left = _behind(left, stream, table["offset"][-1].as_py())
                        yield stream, table
            left = ()
        except _AWAY as error:
            await patience.rest(error)


def _behind(left: Slice, stream: str, offset: int) -> Slice:
    """The rest of a slice after a record of it was given."""

    def holds(part: SourceRange) -> bool:
        return part.stream == stream and part.start <= offset < part.end

    at = next(number for number, part in enumerate(left) if holds(part))
    return (replace(left[at], start=offset + 1), *left[at + 1 :])
