"""Seals a storage topic for a switch, or leaves it open if the switch fails.

    a file for the heir ─▶ hold appends ─▶ sync, ends ─▶ the caller's commit ─▶ refuse what was held
                                                                └─ it failed ─▶ unseal, store what
                                                                                was held

Invariant: held appends are answered either way, and no append is answered between reading the ends
and the commit. This module must not know the contents of the commit.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from dssd.log.appender import Appender
from dssd.log.port import Ends
from dssd.log.topic_state import StorageTopicState
from dssd.log.upkeep.housekeeper import Housekeeper
from dssd.log.write.writer_thread import WriterThread


@asynccontextmanager
async def sealing(
    writer: WriterThread,
    appender: Appender,
    housekeeper: Housekeeper,
    state: StorageTopicState,
    heir: StorageTopicState | None = None,
) -> AsyncGenerator[Ends]:
    """As the port's `sealing`, for a storage topic that exists."""
    async with state.adopting:
        if heir is not None:
            await _give_file(housekeeper, heir)
        appender.hold(state)
        sealed = False
        try:
            ends = await writer.seal(state.storage_topic_id)
            try:
                if heir is not None:
                    await writer.begin_at(heir.storage_topic_id, ends.last_us)
                yield ends
                sealed = True
            finally:
                if not sealed:
                    writer.unseal(state.storage_topic_id)
                state.sealed = sealed
        finally:
            appender.release(state, sealed=sealed)
    housekeeper.begin_end(state)


async def _give_file(housekeeper: Housekeeper, heir: StorageTopicState) -> None:
    """Give the next storage topic a file in advance. Otherwise its first record would wait for one,
    behind the index of the sealed one.

    Raises:
        DssError: there is no file; nothing was held.
    """
    if heir.writable:
        return
    refused = await asyncio.shield(housekeeper.begin_roll(heir))
    if refused is not None:
        raise refused
