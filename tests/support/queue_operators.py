"""Operators who handle failed records of an ordered group, each independently.

Their actions are drawn; the daemon's refusals for a named reason are accepted. Invariant: an
operator asks for the next thing only after the last one was refused, is done, or was lost with its
daemon.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from random import Random

from dss_client import Client
from dss_client.changes import (
    BuryRetries,
    DiscardDeadLetters,
    RedeliverRecords,
    RedriveDeadLetters,
    RetryNow,
    SkipRetries,
    Undo,
)
from dss_core.errors import (
    PASSING,
    DssError,
    NotUndoable,
    OperationInProgress,
    OutcomeUnknown,
    RevisionMoved,
)
from support.ordered_group import PARTITIONS

GROUP, TOPIC = "g", "orders"
RATE = 2_000
FOLLOWED_S = 2.0
"""How long an operator watches an operation that it began."""
LOOK_AGAIN_S = 0.02
REFUSED = (NotUndoable, OperationInProgress, OutcomeUnknown, RevisionMoved, *PASSING)

Change = (
    BuryRetries
    | DiscardDeadLetters
    | RedeliverRecords
    | RedriveDeadLetters
    | RetryNow
    | SkipRetries
    | Undo
)


class Operator:
    """One of them."""

    def __init__(self, client: Client, chance: Random, keys: Sequence[bytes]) -> None:
        self.did: Counter[str] = Counter()
        """Counts, by how operations ended, and by the daemon's refusals."""
        self._client = client
        self._chance = chance
        self._keys = keys
        self._last: int | None = None

    async def act(self) -> None:
        """Do one thing, and perhaps watch it to its end; it may be stopped."""
        change = self._drawn()
        try:
            begun = await self._client.operations.apply(change, reason="as drawn")
        except REFUSED as refused:
            self.did[type(refused).__name__] += 1
            if isinstance(refused, OperationInProgress):
                await self._until_others_ended()
            return
        self._last = begun.number
        with suppress(TimeoutError, *REFUSED):
            async with asyncio.timeout(self._chance.choice((0.0, FOLLOWED_S))):
                begun = await self._client.operations.ended(begun.number)
        if not begun.ended and self._chance.random() < 0.5:
            with suppress(DssError):
                begun = await self._client.operations.cancel(begun.number)
        self.did[f"{begun.kind} {begun.state}"] += 1

    async def _until_others_ended(self) -> None:
        """Wait for other operations, as the refusal advises, but not for ever."""
        with suppress(TimeoutError, *PASSING):
            async with asyncio.timeout(FOLLOWED_S):
                await all_ended(self._client)

    def _drawn(self) -> Change:
        chance = self._chance
        key = chance.choice(self._keys)
        if self._last is not None and chance.random() < 0.25:
            return Undo(self._last)
        canary = chance.choice((None, None, 1, 3))
        stream = f"{TOPIC}/0/{chance.randrange(PARTITIONS)}"
        drawn: list[Change] = [
            RedriveDeadLetters(GROUP, rate=RATE, canary=canary),
            RedriveDeadLetters(GROUP, key=key, rate=RATE),
            RedriveDeadLetters(GROUP, error="refused", rate=RATE, canary=canary),
            DiscardDeadLetters(GROUP, key=key),
            RetryNow(GROUP),
            SkipRetries(GROUP, key=key),
            BuryRetries(GROUP, key=key),
            BuryRetries(GROUP, everything=True),
            RedeliverRecords(GROUP, stream, chance.randrange(8)),
        ]
        return chance.choice(drawn)


async def all_ended(client: Client) -> None:
    """Wait until no operation runs."""
    while any(not each.ended for each in await client.operations.list()):  # noqa: ASYNC110
        await asyncio.sleep(LOOK_AGAIN_S)


async def bring_all_back(client: Client) -> None:
    """Redrive until nothing waits and nothing is dead."""
    while True:
        group = (await client.groups.describe(GROUP)).group
        if (group.lag, group.retrying, group.dead) == (0, 0, 0):
            return
        if group.dead:
            with suppress(OperationInProgress):
                redrive = RedriveDeadLetters(GROUP, rate=RATE)
                begun = await client.operations.apply(redrive, reason="mended")
                await client.operations.ended(begun.number)
        await asyncio.sleep(LOOK_AGAIN_S)
