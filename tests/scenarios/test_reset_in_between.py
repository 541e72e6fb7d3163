"""A proxy between a client and the daemon breaks their connection: who hands out what, when.

The daemon is reached over TLS, with tokens. Two members use `run`, and each tells when it begins
and ends with a record. What is held: no key is at work twice at once, and once a stream was given
to another member, nothing of it is begun by the one before. So it is in an ordered group, too.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

import dss_client
from dss_client._doubt import SILENCE_OF_LEASE
from dss_client.access import Permission
from dss_core.limits import LEASE_MS
from support.certificates import Authority
from support.daemon_process import running, short_directory
from support.proof_share import only_in_proof
from support.proxy import Proxy, proxy_to
from support.started_program import StartedProgram, started

pytestmark = [
    only_in_proof,
    pytest.mark.slow("streams are lent on once a client has been silent for its time"),
]

PROGRAM = Path(__file__).parent / "programs" / "running_member.py"
FILTER = "$share/g/orders/#"
PARTITIONS = 4
KEYS = [b"k%d" % each for each in range(40)]
RECORDS = 16_000
"""More than both members are done with before all is over: each has some in its queue."""
WORK_S = 0.005
AT_WORK = 400
"""Records after which a member is in the midst of what it was sent."""
LENT_ON_WITHIN_S = SILENCE_OF_LEASE * LEASE_MS / 1_000 + 1
SLACK_S = 1.0
"""Of a machine that does other things."""
PATIENCE_S = 60.0


class Work(NamedTuple):
    """What a handler said."""

    key: str
    stream: str
    offset: int
    grant_epoch: int
    began_ns: int
    ended_ns: int


class Granted(NamedTuple):
    """A stream was lent to a member."""

    stream: str
    grant_epoch: int
    at_ns: int


class Member:
    """A running member, and what it did."""

    def __init__(self, process: StartedProgram) -> None:
        self.process = process
        self.work: list[Work] = []
        self.grants: list[Granted] = []
        self._heard = asyncio.Condition()
        self._listening = asyncio.create_task(self._listen(), name="listen to a member")

    async def until(self, reached: Callable[[], object]) -> None:
        async with asyncio.timeout(PATIENCE_S), self._heard:
            await self._heard.wait_for(lambda: bool(reached()))

    async def is_at_work(self) -> None:
        await self.until(lambda: len(self.work) >= AT_WORK)

    async def end(self) -> None:
        self.process.kill()
        await self.process.wait()
        await self._listening

    async def _listen(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            first, stream, *numbers = line.decode().split()
            if first == "granted":
                self.grants.append(Granted(stream, *map(int, numbers)))
            else:
                self.work.append(Work(first, stream, *map(int, numbers)))
            async with self._heard:
                self._heard.notify_all()


class Site:
    """A daemon that is reached by TLS, a group on it, and a proxy before it."""

    def __init__(self, proxy: Proxy, environment: dict[str, str], admin: dss_client.Client) -> None:
        self.proxy = proxy
        self.admin = admin
        self._environment = environment

    @asynccontextmanager
    async def more_published(self) -> AsyncIterator[None]:
        """Some of each key now and then, while the block lasts."""

        async def publish() -> None:
            async with self.admin.producer("orders") as producer:
                while not over.is_set():
                    await producer.send_columns(payloads=[b"x"] * len(KEYS), keys=KEYS)
                    await asyncio.sleep(0.1)

        over = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(publish(), name="publish")
            try:
                yield
            finally:
                over.set()

    @asynccontextmanager
    async def member(self, client_id: str, port: int) -> AsyncIterator[Member]:
        """A member that comes by a port."""
        arguments = f"dss://127.0.0.1:{port}", client_id, FILTER, str(WORK_S)
        process = await started(
            str(PROGRAM), *arguments, pipes=["stdout"], environment=self._environment
        )
        member = Member(process)
        try:
            yield member
        finally:
            await member.end()


@asynccontextmanager
async def site(tmp_path: Path, **how: object) -> AsyncIterator[tuple[Site, int]]:
    """The site, and the port of the daemon itself."""
    authority = Authority(tmp_path)
    pair = authority.signed("localhost", "IP:127.0.0.1")
    with short_directory() as folder:
        async with running(
            "--data-dir", f"{folder}/data", "--listen", f"unix:{folder}/s",
            "--listen", "127.0.0.1:0,tls,clients=tokens",
            "--tls-cert", str(pair.cert), "--tls-key", str(pair.key),
        ) as daemon:  # fmt: skip
            local, remote = daemon.endpoints
            async with (
                dss_client.connect(endpoint=local) as admin,
                proxy_to(remote) as proxy,
            ):
                consume = Permission("consume", ("orders/#",), ("*",))
                made = await admin.access.add_token("member", [consume])
                token = tmp_path / "token"
                token.touch(0o600)
                token.write_text(made.token)
                await _fill(admin, how)
                shown = {"DSSCTL_TLS_CA": str(authority.cert), "DSSCTL_TOKEN_FILE": str(token)}
                yield Site(proxy, {**os.environ, **shown}, admin), int(remote.rpartition(":")[2])


async def _fill(admin: dss_client.Client, how: dict[str, object]) -> None:
    await admin.topics.create("orders", partitions=PARTITIONS)
    await admin.groups.create(FILTER, start="earliest", **how)  # type: ignore[arg-type] # of create
    async with admin.producer("orders") as producer:
        keys = [KEYS[at % len(KEYS)] for at in range(RECORDS)]
        await producer.send_columns(payloads=[b"x"] * RECORDS, keys=keys)


def check(members: Iterable[Member]) -> None:
    """No key is at work twice at once, and who lost a stream begins nothing of it."""
    work = sorted((each for member in members for each in member.work), key=lambda w: w.began_ns)
    by_key: dict[str, list[Work]] = {}
    by_stream: dict[str, list[Work]] = {}
    for each in work:
        by_key.setdefault(each.key, []).append(each)
        by_stream.setdefault(each.stream, []).append(each)
    for before, after in (pair for each in by_key.values() for pair in pairwise(each)):
        assert before.ended_ns <= after.began_ns, f"{before} and {after}"
    for before, after in (pair for each in by_stream.values() for pair in pairwise(each)):
        assert before.grant_epoch <= after.grant_epoch, f"{before} and {after}"


SETTINGS = {
    "plain": {},
    "ordered": {"ordered": True, "max_deliver": 3},
}
WAYS: dict[str, Callable[[Proxy], None]] = {
    "reset": Proxy.reset_the_daemons_side,
    "halved": Proxy.halve,
    "cut": Proxy.cut,
}


@pytest.mark.parametrize(
    ("way", "delay_s", "settings"),
    [
        ("reset", 0.0, "plain"),
        ("reset", 0.4, "ordered"),
        ("halved", 0.4, "plain"),
        ("halved", 0.0, "ordered"),
        ("cut", 0.0, "plain"),
        ("cut", 0.4, "ordered"),
    ],
)
async def test_what_a_client_holds_behind_a_lost_connection_is_nobody_elses_while_it_is_sure(
    tmp_path: Path, way: str, delay_s: float, settings: str
) -> None:
    async with (
        site(tmp_path, **SETTINGS[settings]) as (here, port),
        here.member("beyond", here.proxy.port) as beyond,
        here.member("beside", port) as beside,
    ):
        here.proxy.delay_s = delay_s
        for member in (beyond, beside):
            await member.is_at_work()
        all_granted = sorted(beyond.grants + beside.grants, key=lambda each: each.grant_epoch)
        newest = {each.stream: each for each in all_granted}
        held = {each.stream: each.grant_epoch for each in newest.values() if each in beyond.grants}
        assert held
        WAYS[way](here.proxy)
        lost_ns = time.monotonic_ns()

        def lent_on() -> dict[str, Granted]:
            newer = [each for each in beside.grants if each.grant_epoch > held.get(each.stream, 0)]
            return {each.stream: each for each in newer if each.stream in held}

        await beside.until(lambda: len(lent_on()) == len(held))
        after_s = [(each.at_ns - lost_ns) / 1e9 for each in lent_on().values()]
        if way == "reset":  # else it may hear at once
            went_on_ns = max(each.began_ns for each in beyond.work) - lost_ns
            assert went_on_ns > 0, "it went on with what it had, or this shows nothing"
        # The one behind the proxy comes back by itself, and takes part again.
        here.proxy.delay_s = 0.0
        until_ns = time.monotonic_ns()
        async with here.more_published():
            await beyond.until(lambda: beyond.work[-1].began_ns > until_ns)
    check((beyond, beside))
    assert max(after_s) < LENT_ON_WITHIN_S + SLACK_S
