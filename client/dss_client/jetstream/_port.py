"""The workflow's port to DSS: consumers as groups, one subscription per call.

Invariant: a consumer that is for one subscription has one. Whoever joins its group looks who came
first, by the order of the leader, before anything is handed out; any other leaves again.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from dss_client._subscription_options import SubscriptionOptions
from dss_client.jetstream._consumers import Consumers
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
"""A member is known to the leader within milliseconds; a daemon that stands still is waited for."""


class DssPort:
    """Of one call."""

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
        """Nothing: who joins a group has missed nothing of it."""

    async def create(self, request: Create) -> ConsumerInfo | None:
        """Make the group of the consumer; None where there is one."""
        return await self._consumers.create(request.stream, request.config)

    async def attach(self, request: Attach) -> bool:
        """Join the group; where it is for one, whether nobody else was sooner."""
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
            # Nobody looked it up, or it was removed since: this made a group that nobody asked for.
            await self.withdraw()
            await self._consumers.remove_if_unused(f"{info.name}@{filter}")
            raise ConsumerNotFound(consumer=info.name, stream=info.stream_name)
        if alone is None or await self._came_first(f"{info.name}@{filter}"):
            pieces.released = self._release
            return True
        await self.withdraw()
        return False

    async def _came_first(self, group: str) -> bool:
        try:
            async with asyncio.timeout(BIND_S_MAX):
                members = await self._consumers.members(group)
                while self._client_id not in members:
                    await asyncio.sleep(BIND_LOOK_S)
                    members = await self._consumers.members(group)
        except TimeoutError:
            raise TimedOut(what=f"Joining {group}", seconds=f"{BIND_S_MAX:g}") from None
        return members[0] == self._client_id

    async def withdraw(self) -> None:
        """Leave the group, if it was joined."""
        self._release()
        if self._pieces is not None:
            pieces, self._pieces = self._pieces, None
            await pieces.__aexit__(None, None, None)

    def _release(self) -> None:
        if self._of is not None:
            self._held.discard(self._of)

    async def discard(self, request: Discard) -> None:
        """Delete the consumer unless others use it."""
        try:
            await self._consumers.discard(request.info)
        except GroupInUse:
            return
