"""One program over the death of its server, on a NATS server and on a daemon.

What the program sees is compared: messages, each how often, and where its consumers stand. The
calls are those of nats-py on both sides, so the program is one function.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nats
import pytest
from nats.js.api import ConsumerConfig as NatsConfig

import dss_client
from dss_client.jetstream import ConsumerConfig
from dss_core.errors import ConsumerIsBound
from support.daemon_process import DaemonProcess, running, short_directory
from support.jetstream_worlds import STREAM, until
from support.nats_oracle import NatsServer, mortal_nats_server
from support.proof_share import only_in_proof
from support.revived_daemon import RevivedDaemon, revived

pytestmark = pytest.mark.slow("servers are killed, and what was out comes again after its wait")

A_LIFE = 40
"""Messages that are published before the server dies, and after it."""
KEPT = 3
ACK_WAIT_S = 2.0
FROZEN_S = 2.0
COMES_S = 20.0


@dataclass
class Side:
    """A client of nats-py, or the facade, and what it talks to."""

    js: Any
    config: Callable[..., Any]
    server: NatsServer | RevivedDaemon


@asynccontextmanager
async def nats_side() -> AsyncIterator[Side]:
    async with mortal_nats_server() as server:
        client = await nats.connect(
            server.address, reconnect_time_wait=0.1, max_reconnect_attempts=-1, error_cb=_nothing
        )
        try:
            yield Side(client.jetstream(), NatsConfig, server)
        finally:
            await client.close()


async def _nothing(_: object) -> None:
    """That the connection was lost is no news."""


@asynccontextmanager
async def dss_side() -> AsyncIterator[Side]:
    async with revived() as daemon, dss_client.connect("one", endpoint=daemon.endpoint) as client:
        yield Side(client.jetstream(), ConsumerConfig, daemon)


async def published(js: Any, first: int) -> None:  # noqa: ANN401
    for number in range(first, first + A_LIFE):
        await js.publish("orders.eu", b"%d" % number)


async def answers(js: Any) -> bool:  # noqa: ANN401
    """Whether the server is there again, as the program sees it."""
    try:
        await js.stream_info(STREAM)
    except (nats.errors.Error, TimeoutError):
        return False
    return True


async def ordered_until(sub: Any, seen: list[int], count: int) -> None:  # noqa: ANN401
    async with asyncio.timeout(COMES_S):
        while len(seen) < count:
            try:
                seen.append(int((await sub.next_msg(timeout=1)).data))
            except TimeoutError:
                continue


async def work_through(sub: Any, done: Counter[int], count: int) -> list[int]:  # noqa: ANN401
    """Fetch and acknowledge until each was done; what came again, by its own word."""
    again = []
    async with asyncio.timeout(COMES_S):
        while len(done) < count:
            try:
                batch = await sub.fetch(10, timeout=1)
            except TimeoutError:
                continue
            for each in batch:
                await each.ack_sync(timeout=5)
                done[int(each.data)] += 1
                if each.metadata.num_delivered > 1:
                    again.append(int(each.data))
    return sorted(again)


async def program(side: Side) -> dict[str, Any]:
    """What it sees of a kill and of a server that stands still."""
    js, told = side.js, dict[str, Any]()
    await js.add_stream(name=STREAM, subjects=["orders.>"])
    called: set[int] = set()

    async def callback(message: Any) -> None:  # noqa: ANN401
        called.add(int(message.data))

    ordered = await js.subscribe("orders.>", ordered_consumer=True, idle_heartbeat=0.5)
    pull = await js.pull_subscribe("orders.>", "pulled", config=side.config(ack_wait=ACK_WAIT_S))
    # What was acknowledged as the server died comes again, and is acknowledged again.
    waits = side.config(ack_wait=ACK_WAIT_S)
    await js.subscribe("orders.>", durable="called", cb=callback, config=waits)
    seen: list[int] = []
    done: Counter[int] = Counter()
    await published(js, 0)
    await ordered_until(ordered, seen, A_LIFE // 2)
    kept = await pull.fetch(KEPT, timeout=5)
    told["fetched, and out when the server dies"] = [each.data for each in kept]
    for each in await pull.fetch(10, timeout=5):
        await each.ack_sync(timeout=5)
        done[int(each.data)] += 1

    await side.server.revive()
    await until(lambda: answers(js))
    await published(js, A_LIFE)
    await ordered_until(ordered, seen, 3 * A_LIFE // 2)
    with side.server.frozen():
        await asyncio.sleep(FROZEN_S)
    await until(lambda: answers(js))
    await published(js, 2 * A_LIFE)

    await ordered_until(ordered, seen, 3 * A_LIFE)
    told["ordered: each once, in order"] = seen == list(range(3 * A_LIFE))
    again = await work_through(pull, done, 3 * A_LIFE)
    told["pull: what was out comes again, and says so"] = [*range(KEPT)] == [
        each for each in again if each < KEPT
    ]
    told["pull: what was acknowledged comes no more"] = [
        each for each, times in done.items() if times > 1
    ]
    told["callback: all of them"] = await settled(lambda: called == {*range(3 * A_LIFE)})
    for name in ("pulled", "called"):
        told[f"{name}: where it stands"] = await standing(js, name)
    return told


async def settled(holds: Any) -> bool:  # noqa: ANN401
    async def held() -> bool:
        return bool(holds())

    await until(held)
    return bool(holds())


async def standing(js: Any, name: str) -> tuple[int, int, int]:  # noqa: ANN401
    """Floor, out and waiting, once nothing is out."""
    found: list[tuple[int, int, int]] = []

    async def told() -> bool:
        info = await js.consumer_info(STREAM, name)
        found.append((info.ack_floor.stream_seq, info.num_ack_pending, info.num_pending))
        return not info.num_ack_pending

    await until(told)
    return found[-1]


@only_in_proof
async def test_a_program_sees_the_same_of_a_server_that_dies_and_of_one_that_stands_still() -> None:
    async with nats_side() as theirs, dss_side() as ours:
        nats_saw, dss_saw = await asyncio.gather(program(theirs), program(ours))
    # A NATS server writes what was acknowledged a moment later, so after a kill some comes again.
    again = "pull: what was acknowledged comes no more"
    assert dss_saw[again] == []
    assert nats_saw | {again: []} == dss_saw
    assert dss_saw["ordered: each once, in order"]
    assert dss_saw["pulled: where it stands"] == (3 * A_LIFE, 0, 0)


@asynccontextmanager
async def after_a_restart(home: Path) -> AsyncIterator[dss_client.Client]:
    """A program that joins a daemon which its last one cannot reach yet, at another address."""
    endpoint = f"unix:{home}/b"
    async with (
        running("--data-dir", str(home / "data"), "--listen", endpoint),
        dss_client.connect("new", endpoint=endpoint) as client,
    ):
        yield client


@only_in_proof
@pytest.mark.parametrize("comes_back", [True, False], ids=["it comes back", "it does not"])
async def test_x07_over_a_restart_who_had_a_consumer_for_one_has_it_before_others(
    comes_back: bool,
) -> None:
    with short_directory() as home:
        first = await DaemonProcess.start(
            "--data-dir", f"{home}/data", "--listen", f"unix:{home}/a"
        )
        async with dss_client.connect("old", endpoint=first.endpoint) as old:
            js = old.jetstream()
            await js.add_stream(STREAM, ["orders.>"])
            mine = await js.subscribe("orders.>", durable="d")
            await first.kill()
            (home / "a").unlink(missing_ok=True)
            async with after_a_restart(home) as new:
                joining = asyncio.create_task(new.jetstream().subscribe("orders.>", durable="d"))

                async def joined() -> bool:
                    return bool((await new.groups.describe("d")).borrowers)

                await until(joined)
                assert not joining.done()
                if comes_back:
                    (home / "a").symlink_to(home / "b")
                    with pytest.raises(ConsumerIsBound):
                        await joining
                theirs = mine if comes_back else await joining
                await new.jetstream().publish("orders.eu", b"one")
                assert (await theirs.next_msg(5)).data == b"one"
                if not comes_back:
                    (home / "a").symlink_to(home / "b")
