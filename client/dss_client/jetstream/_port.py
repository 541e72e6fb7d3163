"""The workflow's port to DSS: consumers as groups, one subscription per call.

Invariant: a consumer for one subscription never serves two. A client that joins its group hands out
nothing until it has its streams. It leaves again if, in the leader's order, another member came
first, or if another member holds a stream: after a restart of the daemon, streams are kept for
their former holders, which may join after new members.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from dss_client._subscription_options import SubscriptionOptions
from dss_client.jetstream._consumers import Consumers, Standing
from dss_client.jetstream._pieces import Pieces
from dss_client.jetstream._subjects import slashed
from dss_client.jetstream.config import ConsumerInfo
from dss_client.jetstream.message import Hold
from dss_client.jetstream.workflow import Attach, Create, Discard, Listen, LookUp
from dss_core.errors import ConsumerNotFound, GroupInUse, TimedOut

if TYPE_CHECKING:
    from dss_client.session import Session

BIND_S_MAX = 10.0
BIND_LOOK_S = 0.02
"""How long, and how often, a join is checked. The leader knows a member within milliseconds, and
gives it streams then. The check waits for a daemon that stands still, and for streams that are kept
over a restart, which is two thirds of a lease."""

GIVES_WAY_S = 1.0
"""How long to wait for a later member with a stream to leave: it does within milliseconds, unless
it was there before the daemon restarted."""


class DssPort:
    """The port of one call."""

    def __init__(
        self,
        consumers: Consumers,
        session: "Callable[[], Awaitable[Session]]",
        client_id: str,
        held: set[tuple[str, str]],
        strict_acks: bool,
    ) -> None:
        self._consumers = consumers
        self._session = session
        self._client_id = client_id
        self._held = held
        self._strict_acks = strict_acks
        self._pieces: Pieces | None = None
        self._of: tuple[str, str] | None = None

    @property
    def attached(self) -> Pieces:
        """The subscription, once the workflow has bound it."""
        assert self._pieces is not None, "the workflow has attached it"
        return self._pieces

    async def find_streams(self, subject: str) -> tuple[str, ...]:
        """The streams that the subject meets."""
        return await self._consumers.find_streams(subject)

    async def look_up(self, request: LookUp) -> ConsumerInfo | None:
        """The consumer, if there is one."""
        return await self._consumers.look_up(request.stream, request.name, pull=request.pull)

    async def listen(self, request: Listen) -> None:
        """Does nothing: a new member of a group has missed nothing of it."""

    async def create(self, request: Create) -> ConsumerInfo | None:
        """Make the group of the consumer; None where there is one."""
        return await self._consumers.create(request.stream, request.config)

    async def attach(self, request: Attach) -> bool:
        """Join the group; if the consumer is for one, returns whether nobody else was sooner."""
        info, call = request.info, request.call
        alone = None if call.pull or call.queue else (info.stream_name, info.name)
        if alone in self._held:
            return False
        filter = info.filter or slashed(call.subject, wildcards=True)
        options = SubscriptionOptions.of(f"$share/{info.name}/{filter}")
        pieces = Pieces(self._session, options, Hold(info, strict_acks=self._strict_acks))
        if alone is not None:
            self._held.add(alone)
            self._of = alone
        await pieces.__aenter__()
        self._pieces = pieces
        if pieces.declared:
            # The consumer was not looked up, or was removed since: this join made a group by
            # mistake.
            await self.withdraw()
            await self._consumers.remove_if_unused(f"{info.name}@{filter}")
            raise ConsumerNotFound(consumer=info.name, stream=info.stream_name)
        if alone is not None and not await self._is_alone(f"{info.name}@{filter}"):
            await self.withdraw()
            return False
        self._consumers.used.add(pieces)
        pieces.released = partial(self._released, pieces)
        return True

    async def _is_alone(self, group: str) -> bool:
        """Whether this client, which has joined, is the one that the consumer is for."""
        me, gives_way_s = self._client_id, monotonic() + GIVES_WAY_S
        standing = Standing((), frozenset())
        with suppress(TimeoutError):
            async with asyncio.timeout(BIND_S_MAX):
                while me not in standing.holders or standing.holders > {me}:
                    standing = await self._consumers.standing(group)
                    if me in standing.members[1:] and standing.members[0] != me:
                        return False
                    if standing.holders <= {me}:
                        gives_way_s = monotonic() + GIVES_WAY_S
                    elif monotonic() >= gives_way_s:
                        return False
                    await asyncio.sleep(BIND_LOOK_S)
        if me not in standing.members:
            raise TimedOut(what=f"Joining {group}", seconds=f"{BIND_S_MAX:g}")
        return True  # a group that is paused or has no streams lends none

    async def withdraw(self) -> None:
        """Leave the group, if it was joined."""
        self._release()
        if self._pieces is not None:
            pieces, self._pieces = self._pieces, None
            await pieces.__aexit__(None, None, None)

    def _released(self, pieces: Pieces) -> None:
        self._consumers.used.discard(pieces)
        self._release()

    def _release(self) -> None:
        if self._of is not None:
            self._held.discard(self._of)

    async def discard(self, request: Discard) -> None:
        """Delete the consumer unless others use it."""
        try:
            await self._consumers.discard(request.info)
        except GroupInUse:
            return
