"""A driver on Spark that reaches the daemon by TLS, with a token in a file, from another host.

Everything is real: certificates, a daemon that lets in who has a token, a JVM, tasks in their own
processes, what Spark keeps of it. The hosts are network namespaces with a link between them.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import dss_client
from dss_client.access import Permission
from dss_client.changes import CreateJob
from support.certificates import Authority
from support.daemon_process import DaemonProcess, short_directory
from support.network_namespaces import Host, two_hosts
from support.prerequisites import need_spark
from support.proof_share import only_in_proof
from support.spark_processes import LOOK_S, PATIENCE_S, Submitted, submitted

RECORDS, KEYS = 4_000, 40
JOB = "far"
RIGHTS = (Permission("consume", ("orders/#",)), Permission("produce", ("copies/#",)))

pytestmark = [pytest.mark.slow("a JVM starts"), only_in_proof]


@asynccontextmanager
async def served(folder: Path, authority: Authority, here: Host) -> AsyncIterator[DaemonProcess]:
    pair = authority.signed(here.address, f"IP:{here.address}")
    arguments = (
        "--data-dir", f"{folder}/data", "--listen", f"unix:{folder}/s",
        "--listen", f"{here.address}:0,tls,clients=tokens",
        "--tls-cert", str(pair.cert), "--tls-key", str(pair.key),
    )  # fmt: skip
    daemon = await DaemonProcess.start(*arguments, tracer=here.enter)
    try:
        yield daemon
        assert await daemon.stop() == 0
    finally:
        await daemon.kill()


async def filled(admin: dss_client.Client) -> None:
    """Records of some keys, and a job that copies them."""
    await admin.topics.create("orders", partitions=2)
    await admin.topics.create("copies", partitions=3)
    async with admin.producer("orders") as producer:
        await producer.send_columns(
            payloads=[b"%d" % each for each in range(RECORDS)],
            keys=[b"%d" % (each % KEYS) for each in range(RECORDS)],
        )
    change = CreateJob(JOB, "replay", "spark", source="orders", target="copies")
    await admin.operations.apply(await admin.operations.plan(change), reason="a test")


async def command_lines(driver: Submitted) -> bytes:
    """Those of all processes below the driver, from its beginning to its end."""
    said: set[bytes] = set()
    while driver.is_running:
        for pid in (driver.process.pid, *driver.processes()):
            for kept in ("cmdline", "environ"):
                try:
                    said.add(await asyncio.to_thread(Path(f"/proc/{pid}/{kept}").read_bytes))
                except OSError:  # it has ended
                    continue
        await asyncio.sleep(LOOK_S)
    return b"\n".join(said)


async def test_a_driver_on_spark_works_with_a_token_that_it_shows_to_nobody(tmp_path: Path) -> None:
    need_spark()
    authority = Authority(tmp_path)
    own = tmp_path / "own"
    own.mkdir()
    async with asyncio.timeout(PATIENCE_S):
        with short_directory() as folder, two_hosts() as (here, there):
            async with served(folder, authority, here) as daemon:
                local, remote = daemon.endpoints
                remote = f"dss://{remote.removeprefix('dss://')}"
                async with dss_client.connect(endpoint=local) as admin:
                    await filled(admin)
                    token = (await admin.access.add_token("driver", RIGHTS)).token
                    token_file = own / "driver.token"
                    token_file.touch(0o600)
                    token_file.write_text(token)
                    events = own / "events"
                    events.mkdir()
                    kept = (
                        "spark.eventLog.enabled=true",
                        "spark.eventLog.compress=false",
                        f"spark.eventLog.dir=file://{events}",
                    )
                    files = {
                        "DSSCTL_TLS_CA": str(authority.cert),
                        "DSSCTL_TOKEN_FILE": str(token_file),
                        "TMPDIR": str(own),
                        "SPARK_LOCAL_IP": there.address,
                    }
                    async with submitted(
                        JOB, remote, own, conf=kept, environment=files, enter=there.enter
                    ) as driver:
                        lines = await command_lines(driver)
                        assert await driver.ended() == 0, driver.said()
                    job = await admin.jobs.get(JOB)
                    assert (job.state, job.records) == ("done", RECORDS)
                    copies: dict[bytes | None, list[int]] = {}
                    async for record in admin.read("copies/#"):
                        copies.setdefault(record.key, []).append(int(record.payload))
            assert copies == {
                b"%d" % key: list(range(key, RECORDS, KEYS)) for key in range(KEYS)
            }, "each once, in the order of its key"
            events_kept = [path.read_bytes() for path in events.rglob("*") if path.is_file()]
            assert any(b"SparkListenerEnvironmentUpdate" in each for each in events_kept)
            told = [driver.said().encode(), daemon.said.encode(), lines, *events_kept]
            assert not [each for each in told if token.encode() in each]
            assert str(token_file).encode() in lines, "only where it is, in the environment"
