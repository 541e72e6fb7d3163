"""Sessions over real leaders, and clients of them that tests play item by item."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from dss_core.progress import Ranges, complement
from dss_sim.played_groups import PATIENCE_S, Plant
from dssd.events.teller import Teller
from dssd.machines.delivery.events import Deliver, Nak, Settle, Settles
from dssd.machines.start_point import Earliest, StartPoint
from dssd.sessions.client_items import (
    Down,
    FinishRevoke,
    Granted,
    Opened,
    Opening,
    Refused,
    Revoke,
    Subscribe,
    Subscribed,
)
from dssd.sessions.scheduler import cut_frames
from dssd.sessions.session import Session
from dssd.sessions.sessions import Sessions

Item = TypeVar("Item")


class Attached:
    """One connection. It answers a revoke by itself, unless a test wants to."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.opened: Opened
        self.heard: list[Down] = []
        self.frontiers: dict[int, int] = {}
        self.answers_revokes = True
        self._items: asyncio.Queue[Down | None] = asyncio.Queue()

    async def listen(self) -> None:
        """Move items from the session to this client."""
        while (item := await self.session.next_item()) is not None:
            if isinstance(item, Revoke) and self.answers_revokes:
                await self.session.take(FinishRevoke(item.grant))
            self._items.put_nowait(item)
        self._items.put_nowait(None)

    async def next(self, kind: type[Item], **having: Any) -> Item:  # noqa: ANN401 # fields of any kind
        """The next item of the kind with these fields; others are skipped."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                item = await self._items.get()
                assert item is not None, f"ended before {kind.__name__}: {self.heard}"
                self.heard.append(item)
                if isinstance(item, kind) and all(
                    getattr(item, name) == value for name, value in having.items()
                ):
                    return item

    async def end(self) -> list[Down]:
        """All items up to the end."""
        left: list[Down] = []
        async with asyncio.timeout(PATIENCE_S):
            while (item := await self._items.get()) is not None:
                left.append(item)
        return left

    async def subscribe(
        self, filter_: str, subscription: int = 1, start: StartPoint | None = None
    ) -> Subscribed:
        """Subscribe, from the earliest record on unless told otherwise."""
        await self.session.take(Subscribe(subscription, filter_, start or Earliest()))
        return await self.next(Subscribed)

    async def records(self, count: int) -> list[tuple[int, int, bool, int]]:
        """This many records: (grant, offset, redelivered, attempt). They count as handed out."""
        found: list[tuple[int, int, bool, int]] = []
        while len(found) < count:
            deliver = await self.next(Deliver)
            for start, end in offsets_of(deliver):
                found.extend(
                    (deliver.grant, offset, deliver.redelivered, deliver.attempt)
                    for offset in range(start, end)
                )
                self.frontiers[deliver.grant] = max(end, self.frontiers.get(deliver.grant, 0))
        await self.settle(*(Settle(grant, frontier=end) for grant, end in self.frontiers.items()))
        return found

    async def settle(self, *settles: Settle) -> None:
        """Report what was done with records."""
        await self.session.take(Settles(settles))

    async def ack(self, grant: int, start: int, end: int, token: int = 0) -> None:
        """Acknowledge a range."""
        frontier = self.frontiers.get(grant, 0)
        await self.settle(Settle(grant, ((start, end),), frontier=frontier, token=token))

    async def nak(self, grant: int, start: int, end: int, delay_ms: int | None = None) -> None:
        """Refuse a range."""
        frontier = self.frontiers.get(grant, 0)
        await self.settle(Settle(grant, naks=(Nak(start, end, delay_ms),), frontier=frontier))

    async def refused(self) -> Refused:
        """The next error."""
        return await self.next(Refused)

    async def granted(self) -> Granted:
        """The next grant."""
        return await self.next(Granted)


def offsets_of(deliver: Deliver) -> Ranges:
    """The offsets that are for the user."""
    spans = cut_frames(deliver.frames)
    return complement(deliver.mask, spans.base[0], spans.base[-1])


class Hall:
    """Sessions over a plant."""

    def __init__(self, plant: Plant, sessions: Sessions) -> None:
        self.plant = plant
        self.sessions = sessions

    @asynccontextmanager
    async def attached(self, client_id: str = "c", **opening: Any) -> AsyncIterator[Attached]:  # noqa: ANN401 # fields of an opening
        """Connect; on leaving, the connection is lost."""
        session = await self.sessions.attach(Opening(client_id, **opening))
        client = Attached(session)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(session.run(), name="session")
            tasks.create_task(client.listen(), name="client")
            client.opened = await client.next(Opened)
            yield client
            self.sessions.detach(session)


@asynccontextmanager
async def opened_hall(plant: Plant, events: Teller | None = None) -> AsyncIterator[Hall]:
    """Sessions as a daemon opens them, over a running plant; `events` gets their trouble."""
    sessions = await Sessions.open(
        plant.store,
        plant.catalogue,
        plant.log,
        plant.groups,
        plant.registry,
        plant.clock,
        events=events,
    )
    async with sessions:
        yield Hall(plant, sessions)
