"""A real daemon, watched while it works."""

import asyncio
import re
import socket
import urllib.request
from pathlib import Path

import pytest

import dss_client
from dss_core.errors import TopicNotFound
from dssd.metrics.table import TABLE, SeriesKind
from support.daemon_process import DaemonEnded, DaemonProcess, running

PORT = re.compile(r"metrics at (http://\S+)")


async def scraped(daemon: DaemonProcess) -> dict[str, float]:
    """The values by name and labels, as they are written."""
    found = PORT.search(daemon.said)
    assert found is not None, daemon.said
    text = await asyncio.to_thread(fetched, found[1])
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def fetched(url: str) -> str:
    with urllib.request.urlopen(url, timeout=60) as answer:
        return str(answer.read().decode())


async def test_a_daemon_tells_what_it_did_and_what_it_holds() -> None:
    async with running("--dev", "--metrics", "127.0.0.1:0") as daemon:
        async with dss_client.connect(endpoint=daemon.endpoint) as client:
            await client.topics.create("orders", partitions=2)
            async with client.producer("orders") as producer:
                for _ in range(10):
                    await producer.send(b"x", key=b"k")
            await client.groups.create("$share/unread/orders/#", start="earliest")
            with pytest.raises(TopicNotFound):
                await client.topics.describe("missing")
            async with client.subscribe("$share/g/orders/#", start="earliest") as subscription:
                async for record in subscription:
                    values = await scraped(daemon)
                    assert values["dss_out_records"] == 10
                    await record.ack()
                    break
        values = await scraped(daemon)
    # Groups that nobody reads, and errors that clients get, are what alerts go by.
    assert values['dss_group_lag_records{filter="orders/#",group="unread"}'] == 10
    assert values['dss_group_members{filter="orders/#",group="unread"}'] == 0
    assert 0 < values['dss_group_lag_seconds{filter="orders/#",group="unread"}'] < 600
    assert values['dss_groups{state="idle"}'] >= 1
    assert values["dss_stored_records_total"] == 10
    assert values["dss_stored_bytes_total"] < values["dss_log_bytes"]
    assert values["dss_append_duration_seconds_count"] >= 1
    assert values["dss_sync_duration_seconds_count"] >= 1
    assert values["dss_commit_duration_seconds_count"] >= 1
    assert values["dss_delivered_records_total"] == 10
    assert values["dss_delivery_age_seconds_count"] >= 1
    assert values['dss_errors_total{code="DSS2001"}'] == 1
    assert values["dss_producers"] == 1
    assert values["dss_topics"] == 1
    shown = {name.partition("{")[0] for name in values}
    for spec in TABLE:
        name = f"{spec.name}_count" if spec.kind is SeriesKind.HISTOGRAM else spec.name
        assert name in shown


async def test_a_metrics_port_in_use_ends_the_start_with_its_code(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(DaemonEnded) as ended:
            await DaemonProcess.start("--data-dir", str(tmp_path / "data"), "--metrics", address)
    assert ended.value.exit_code == 78
    assert f"Cannot listen on {address}: " in ended.value.said
    assert "DSS5008" in ended.value.said
