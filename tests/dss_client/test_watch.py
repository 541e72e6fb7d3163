"""A real daemon watched through the client, over a restart."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest

import dss_client
from dss_api.v1 import groups_pb2, watch_pb2
from dss_client import (
    Event,
    Group,
    WatchedGrant,
    WatchedLag,
    WatchedMember,
    WatchedValue,
    WatchKey,
    WatchUpdate,
)
from dss_client.changes import PauseGroup
from dss_client.watch import WATCH_PIECE_ITEMS, updates_from_wire
from dss_core.errors import IllegalArgument, Unreachable
from dssd.events.kinds import CONSUMER_SLOW
from dssd.events.model import Event as Told
from support.daemon_process import running
from support.told_events import tell_in

GROUP = "g@orders/#"
LAG = WatchKey("lags", GROUP, "orders/0/0")


def serve(home: Path) -> tuple[str, ...]:
    return ("--data-dir", str(home / "data"), "--listen", f"unix:{home / 'd.sock'}")


class Dashboard:
    """What a dashboard knows."""

    def __init__(self, updates: AsyncGenerator[WatchUpdate, None]) -> None:
        self._updates = updates
        self.known: dict[WatchKey, WatchedValue] = {}
        self.times_anew = 0

    async def until(self, holds: Callable[[dict[WatchKey, WatchedValue]], bool]) -> None:
        """Apply updates until something holds."""
        while not holds(self.known):
            update = await anext(self._updates)
            if update.anew:
                self.times_anew += 1
                kept = {key: each for key, each in self.known.items() if key.topic == "events"}
                self.known = kept
            self.known.update(update.changed)
            for key in update.removed:
                self.known.pop(key, None)

    def lag(self) -> WatchedLag:
        """Of the stream."""
        found = self.known[LAG]
        assert isinstance(found, WatchedLag)
        return found


async def test_a_dashboard_has_what_the_daemon_has_over_a_restart(home: Path) -> None:
    async with (
        asyncio.timeout(60),
        dss_client.connect("ana", endpoint=f"unix:{home / 'd.sock'}") as client,
    ):
        board = Dashboard(client.watch())
        async with running(*serve(home)) as daemon:
            await client.topics.create("orders", partitions=1)
            await client.groups.create("$share/g/orders/#", start="earliest")
            await board.until(lambda known: LAG in known)
            await act(client, board)
            events = {key for key in board.known if key.topic == "events"}
            assert await daemon.stop() == 0
        await tell_in(home / "data", 0, [Told(CONSUMER_SLOW, "ana", "It stopped reading.")])
        async with running(*serve(home)):
            await board.until(lambda known: any(is_of(each, "ana") for each in known.values()))
            await board.until(lambda known: LAG in known)
            assert board.times_anew == 2
            assert board.lag().lag == 1
            assert events < {key for key in board.known if key.topic == "events"}


async def act(client: dss_client.Client, board: Dashboard) -> None:
    """Change this and that; the dashboard follows."""
    async with client.producer("orders") as producer:
        for at in range(3):
            producer.send_nowait(b"%d" % at)
    await board.until(lambda known: board.lag().lag == 3)
    async with client.subscribe("$share/g/orders/#") as subscription:
        async for record in subscription:
            await record.ack()
            if record.offset == 1:
                break
        await board.until(lambda known: board.lag().floor == 2)
        await board.until(lambda known: any(isinstance(e, WatchedMember) for e in known.values()))
        await board.until(lambda known: holder(known) == "ana")
        await board.until(lambda known: WatchKey("sessions", "", "ana") in known)
    applied = await client.operations.apply(PauseGroup("g"))
    await board.until(lambda known: WatchKey("operations", "", str(applied.number)) in known)
    await board.until(lambda known: any(is_of(each, GROUP) for each in known.values()))
    await board.until(lambda known: holder(known) == "")
    group = board.known[WatchKey("groups", GROUP, "")]
    assert isinstance(group, Group)
    assert (group.state, group.lag, group.borrowers) == ("paused", 1, 0)


def holder(known: dict[WatchKey, WatchedValue]) -> str:
    grant = known[WatchKey("grants", GROUP, "orders/0/0")]
    assert isinstance(grant, WatchedGrant)
    return grant.client_id


def is_of(value: WatchedValue, subject: str) -> bool:
    return isinstance(value, Event) and value.subject == subject


async def test_a_watch_of_nothing_known_and_of_no_daemon_is_an_error(home: Path) -> None:
    async with dss_client.connect(endpoint=f"unix:{home / 'd.sock'}") as client:
        with pytest.raises(IllegalArgument):
            await anext(client.watch("cats"))
        with pytest.raises(Unreachable):
            await anext(client.watch("groups"))


@pytest.mark.parametrize("count", [0, 1, WATCH_PIECE_ITEMS, 2 * WATCH_PIECE_ITEMS + 1])
def test_what_is_told_at_once_comes_in_pieces_of_which_the_last_is_complete(count: int) -> None:
    names = [f"g{number}" for number in range(count)]
    reply = watch_pb2.WatchReply(
        anew=True,
        changed=[watch_pb2.WatchedItem(group=groups_pb2.Group(name=name)) for name in names],
        removed=[watch_pb2.WatchedKey(topic=watch_pb2.WATCH_TOPIC_SESSIONS, name="c")],
        token=watch_pb2.WatchToken(revision=1),
    )
    pieces = list(updates_from_wire(reply))
    assert [key.group for each in pieces for key, _ in each.changed] == [f"{n}@" for n in names]
    assert max(len(each.changed) for each in pieces) <= WATCH_PIECE_ITEMS
    assert [each.anew for each in pieces] == [True] + [False] * (len(pieces) - 1)
    assert [each.complete for each in pieces] == [False] * (len(pieces) - 1) + [True]
    assert [bool(each.removed) for each in pieces] == [each.complete for each in pieces]
    reply.ClearField("token")
    assert not any(each.complete for each in updates_from_wire(reply))
