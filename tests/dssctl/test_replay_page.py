"""Every command of ``docs/replay.md`` works, and what comes of it is right."""

import asyncio
import json
import shlex
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

import pytest

import dss_client
from support.dssctl_call import Daemon
from support.page_blocks import blocks
from support.prerequisites import need_spark
from support.proof_share import only_in_proof

BEGIN, END = "2026-11-20T13:05:00Z", "2026-11-20T13:40:00Z"
PRICES = 40


def now() -> str:
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")


async def published(endpoint: str) -> tuple[str, str]:
    """Prices, of which those of some time are a hundred times too high; from when to when."""
    times: list[str] = []
    async with dss_client.connect(endpoint=endpoint) as client:
        await client.topics.create("prices", partitions=2)
        async with client.producer("prices") as producer:
            for factor in (1, 100, 1):
                times.append(now())
                for number in range(PRICES):
                    price = {"item": f"i{number}", "cents": (1_000 + number) * factor}
                    payload = json.dumps(price, separators=(",", ":")).encode()
                    producer.send_nowait(payload, key=b"i%d" % (number % 7))
                await producer.flush()
    return times[1], times[2]


@pytest.mark.slow("a JVM starts for two jobs")
@only_in_proof
def test_the_commands_of_the_page_work_one_after_the_other(
    daemon: Daemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_spark()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    begin, end = asyncio.run(published(daemon.endpoint))
    [function] = blocks("docs/replay.md", "python")
    Path("fix.py").write_text(function.text)
    found = [block.commands() for block in blocks("docs/replay.md", "console")]
    for each in chain(*found):
        words = shlex.split(each.command.replace(BEGIN, begin).replace(END, end))
        assert words.pop(0) == "dssctl"
        done = daemon.dssctl(*words)
        assert done.returncode == 0, f"{each}: {done.stderr.decode()}"
    assert asyncio.run(corrected(daemon.endpoint)) == sorted(range(1_000, 1_000 + PRICES))


async def corrected(endpoint: str) -> list[int]:
    """The prices in the topic of corrections."""
    async with dss_client.connect(endpoint=endpoint) as client:
        found = [json.loads(each.payload) async for each in client.read("prices-corrected/#")]
    return sorted(each["cents"] for each in found)
