"""`Sessions.Attach` through a raw stub: what a client may say, and what it is told."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

from dss_api.v1 import sessions_pb2, sessions_pb2_grpc, types_pb2
from dss_client.testing import until
from dss_core.build import build_frame
from dss_core.columns import Columns
from dss_core.decode import decode
from dss_sim.played_groups import LOOK_AGAIN_S, Plant
from dss_sim.played_sessions import Hall, opened_hall
from dssd.addresses import UnixAddress
from dssd.log.port import Append
from dssd.rpc.principal import principal_of
from dssd.rpc.server import RpcServer
from dssd.rpc.sessions import SessionsServicer
from dssd.sessions.client_items import Opening
from dssd.sessions.session import Session
from dssd.store.memory import MemoryStore
from support.audits import unaudited, uncounted
from support.raw_http2 import DATA, RawPeer, message_head
from support.raw_stubs import Stubs, connected

Up = sessions_pb2.SessionUp
Open = sessions_pb2.Open
BREAKS = 10
CALLS = 20


class Call:
    """One raw call."""

    def __init__(self, stubs: Stubs) -> None:
        self.call = stubs.sessions.Attach()

    async def say(self, **item: Any) -> None:  # noqa: ANN401 # an item of any kind
        await self.call.write(Up(**item))

    async def hear(self, kind: str) -> Any:  # noqa: ANN401 # an item of any kind
        async with asyncio.timeout(60):
            while True:
                message = await self.call.read()
                assert isinstance(message, sessions_pb2.SessionDown), f"ended before {kind}"
                if message.WhichOneof("item") == kind:
                    return getattr(message, kind)

    async def code(self) -> str:
        return str((await self.hear("error")).error.code)


class Deaf:
    """The context of a call whose client opens a session, and then neither speaks nor reads."""

    def __init__(self) -> None:
        self.stuck = asyncio.Event()

    def peer(self) -> str:
        return "unix:"

    def invocation_metadata(self) -> tuple[()]:
        return ()

    async def says(self) -> AsyncIterator[sessions_pb2.SessionUp]:
        yield Up(open=Open(client_id="deaf"))
        await asyncio.Event().wait()

    async def write(self, message: sessions_pb2.SessionDown) -> None:
        self.stuck.set()
        await asyncio.Event().wait()


class Ending:
    """The context of a call that ends as a test says. gRPC tells of each way as of a last item."""

    def __init__(self, client_id: str) -> None:
        self.opened = asyncio.Event()
        self._client_id = client_id
        self._ends = asyncio.Event()
        self._broken = self._reads_nothing = False

    def end(self, *, broken: bool = False, reads_nothing: bool = False) -> None:
        self._broken, self._reads_nothing = broken, reads_nothing
        self._ends.set()

    def peer(self) -> str:
        return "unix:"

    def invocation_metadata(self) -> tuple[()]:
        return ()

    async def says(self) -> AsyncIterator[sessions_pb2.SessionUp]:
        yield Up(open=Open(client_id=self._client_id))
        await self._ends.wait()

    async def write(self, message: sessions_pb2.SessionDown) -> None:
        self.opened.set()
        if self._reads_nothing:
            await asyncio.Event().wait()
        if self._broken:
            raise asyncio.InvalidStateError


@pytest.fixture
async def hall(tmp_path: Path) -> AsyncIterator[Hall]:
    store = MemoryStore()
    plant = Plant(tmp_path / "log", store)
    await plant.start()
    async with opened_hall(plant) as opened:
        yield opened
    await plant.stop()
    await store.close()


@asynccontextmanager
async def served(hall: Hall, path: Path) -> AsyncIterator[Callable[[], Call]]:
    servicer = SessionsServicer(hall.sessions)
    crashes: list[BaseException] = []

    def register(server: grpc.aio.Server) -> None:
        sessions_pb2_grpc.add_SessionsServicer_to_server(servicer, server)

    server = RpcServer([register], crashes.append, unaudited(), uncounted())
    server.bind([UnixAddress(path)])
    await server.start()
    async with connected(f"unix:{path}") as stubs:
        yield lambda: Call(stubs)
        await hall.sessions.stop()
    await server.stop(5)
    assert crashes == []


async def test_records_come_and_a_synchronous_ack_is_answered(hall: Hall, tmp_path: Path) -> None:
    [stream] = await hall.plant.topic("orders", 1)
    await hall.plant.publish(stream, 3)
    async with served(hall, tmp_path / "s") as calls:
        call = calls()
        await call.say(open=Open(client_id="c", clean_start=True))
        opened = await call.hear("opened")
        assert (opened.client_id, opened.session_present) == ("c", False)
        earliest = types_pb2.Start(earliest=True)
        await call.say(
            subscribe=sessions_pb2.Subscribe(
                subscription=1, filter="$share/g/orders/#", start=earliest
            )
        )
        assert (await call.hear("subscribed")).declared
        granted = await call.hear("granted")
        deliver = await call.hear("deliver")
        assert (deliver.grant, deliver.redelivered, deliver.attempt) == (granted.grant, False, 1)
        settle = sessions_pb2.Settle(
            grant=granted.grant,
            acked=[types_pb2.Range(start=0, end=3)],
            frontier=3,
            token=5,
        )
        await call.say(settle=sessions_pb2.SettleBatch(settles=[settle]))
        assert (await call.hear("settled")).token == 5


@pytest.mark.parametrize("takes_bundles", [True, False])
async def test_what_is_stored_together_comes_in_one_item_to_who_takes_that(
    hall: Hall, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, takes_bundles: bool
) -> None:
    # However slow this machine is: what one commit stored is told in one step.
    monkeypatch.setattr("dssd.log.write.loop_reports.LOOP_TURN_S", 60)
    streams = await hall.plant.topic("orders", 2)
    async with served(hall, tmp_path / "s") as calls:
        call = calls()
        await call.say(open=Open(client_id="c", takes_bundles=takes_bundles))
        await call.say(subscribe=sessions_pb2.Subscribe(subscription=1, filter="orders/#"))
        grants = [(await call.hear("granted")).grant for _ in streams]
        [session] = hall.sessions._connections()
        window = session._scheduler._window
        await until(lambda: all(stream.at_tail for stream in window.streams()))
        epoch = hall.plant.catalogue.get("orders").topic_epoch
        columns = Columns([b"x"], None, "orders", None, 1)
        frames = [
            build_frame(columns, partition=each.partition, producer_id=bytes(16), sequence=0)
            for each in streams
        ]
        await hall.plant.log.append(
            [Append(*each, epoch) for each in zip(streams, frames, strict=True)]
        )
        if takes_bundles:
            delivered = (await call.hear("bundle")).deliveries
        else:
            delivered = [await call.hear("deliver") for _ in streams]
        assert {each.grant for each in delivered} == set(grants)
        assert all(decode(each.frames).records == 1 for each in delivered)


async def test_the_first_item_must_open_but_a_wrong_one_ends_nothing(
    hall: Hall, tmp_path: Path
) -> None:
    async with served(hall, tmp_path / "s") as calls:
        call = calls()
        await call.say(ping=sessions_pb2.Ping(token=1))
        assert await call.code() == "DSS6006"
        await call.say(open=Open())
        assert (await call.hear("opened")).client_id
        await call.say(open=Open())
        assert await call.code() == "DSS1010"
        await call.call.write(Up())
        assert await call.code() == "DSS1010"
        await call.say(ping=sessions_pb2.Ping(token=2))
        assert (await call.hear("pong")).token == 2


@pytest.mark.parametrize(
    ("opening", "code"),
    [
        (Open(client_id="a b"), "DSS1001"),
        (Open(session_id=b"short"), "DSS1010"),
        (Open(session_expiry_s=1 << 31), "DSS1010"),
        (Open(credit_records=0), "DSS1010"),
    ],
)
async def test_a_wrong_opening_is_refused_for_good(
    hall: Hall, tmp_path: Path, opening: sessions_pb2.Open, code: str
) -> None:
    async with served(hall, tmp_path / "s") as calls:
        call = calls()
        await call.say(open=opening)
        error = await call.hear("error")
        assert (error.error.code, error.final) == (code, True)
        assert await call.call.read() is grpc.aio.EOF


async def test_numbers_out_of_bounds_are_refused(hall: Hall, tmp_path: Path) -> None:
    async with served(hall, tmp_path / "s") as calls:
        call = calls()
        await call.say(open=Open())
        most = (1 << 64) - 1
        await call.say(subscribe=sessions_pb2.Subscribe(subscription=most, filter="x"))
        assert await call.code() == "DSS1010"
        settle = sessions_pb2.Settle(grant=most, frontier=most)
        await call.say(settle=sessions_pb2.SettleBatch(settles=[settle]))
        assert await call.code() == "DSS6001"


async def test_a_client_that_goes_away_leaves_its_session(hall: Hall, tmp_path: Path) -> None:
    async with served(hall, tmp_path / "s") as calls:
        call = calls()
        await call.say(open=Open(client_id="c", session_expiry_s=60))
        await call.hear("opened")
        assert hall.sessions.counts().connected == 1
        call.call.cancel()
        async with asyncio.timeout(60):
            while hall.sessions.counts().connected:  # noqa: ASYNC110 # nothing tells of it
                await asyncio.sleep(LOOK_AGAIN_S)
        assert hall.sessions.counts().detached == 1


async def test_a_taken_over_connection_is_told_and_ends(hall: Hall, tmp_path: Path) -> None:
    async with served(hall, tmp_path / "s") as calls:
        old, new = calls(), calls()
        await old.say(open=Open(client_id="c"))
        await old.hear("opened")
        await new.say(open=Open(client_id="c"))
        assert (await new.hear("opened")).session_present
        error = await old.hear("error")
        assert (error.error.code, error.final) == ("DSS6002", True)
        assert await old.call.read() is grpc.aio.EOF


async def test_a_client_that_reads_nothing_does_not_hold_a_call_that_is_over(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dssd.rpc.sessions.SESSION_FAREWELL_S", 0.01)
    context: Any = Deaf()
    call = asyncio.create_task(SessionsServicer(hall.sessions).Attach(context.says(), context))
    await context.stuck.wait()
    again = await hall.sessions.attach(Opening("deaf", principal=str(principal_of(context))))
    async with asyncio.timeout(60):
        await call
    assert hall.sessions.counts().connected == 1
    hall.sessions.detach(again)


@pytest.mark.parametrize(
    ("way", "left"), [({}, True), ({"broken": True}, False), ({"reads_nothing": True}, True)]
)
async def test_a_client_left_of_its_own_will_only_if_its_call_is_whole(
    hall: Hall, monkeypatch: pytest.MonkeyPatch, way: dict[str, bool], *, left: bool
) -> None:
    monkeypatch.setattr("dssd.rpc.sessions.SESSION_FAREWELL_S", 0.01)
    context: Any = Ending("c")
    call = asyncio.create_task(SessionsServicer(hall.sessions).Attach(context.says(), context))
    await context.opened.wait()
    [session] = hall.sessions._connections()
    context.end(**way)
    async with asyncio.timeout(60):
        await call
    assert (session.ended.is_set(), session.left) == (True, left)


async def test_no_client_whose_connection_breaks_left_of_its_own_will(
    hall: Hall, tmp_path: Path
) -> None:
    async with served(hall, tmp_path / "s"):
        sessions: list[Session] = []
        for _ in range(BREAKS):
            with RawPeer(tmp_path / "s") as peer:
                await asyncio.to_thread(attach, peer)
                sessions += hall.sessions._connections()
            async with asyncio.timeout(60):
                await asyncio.gather(*(each.ended.wait() for each in sessions))
        assert len(sessions) == BREAKS * CALLS
        assert [each.client_id for each in sessions if each.left] == []


def attach(peer: RawPeer) -> None:
    """Open sessions on one connection."""
    peer.greet()
    opening = Up(open=Open()).SerializeToString()
    for _ in range(CALLS):
        stream = peer.call("/dss_api.v1.Sessions/Attach")
        peer.data(stream, message_head(len(opening)) + opening)
        peer.heard(DATA, stream)
