"""Real flights: backfilled, replayed to twice the partitions, and audited clean in both topics."""

from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import dss_client
from dss_bulk.audits.output import output_of
from dss_bulk.audits.params import AuditParams
from dss_bulk.audits.report import Report, report_of
from dss_bulk.backfill_work import BackfillParams, chunks_of
from dss_bulk.driver import drive
from dss_bulk.inputs import Inputs
from dss_bulk.local_engine import LOCAL
from dss_bulk.row_rule import RowRule
from dss_client import Client
from dss_client.changes import CreateJob
from support.daemon_process import running, short_directory
from support.proof_share import share

FLIGHTS = Path(__file__).resolve().parents[2] / "examples" / "flights.parquet"
COUNT = share(6_000, 336_776)
RULE = RowRule("flights", "tailnum", null_key="keyless", subject="flights/{origin}/{carrier}")
CHUNK_BYTES = share(1 << 20, 16 << 20)


async def driven(client: Client, change: CreateJob) -> None:
    await client.operations.apply(await client.operations.plan(change), reason="a test")
    assert (await drive(client, change.name, engine=LOCAL)).state == "done"


async def audited(client: Client, topic: str) -> Report:
    params = AuditParams.of(await client.topics.describe(topic))
    change = CreateJob(f"{topic}-audit", "audit", source=topic, params=params.to_json())
    await driven(client, change)
    output = await output_of(client.jobs.chunks(change.name))
    return report_of(output.partial, params.partitions)


@pytest.mark.slow("thousands of rows become records, are copied, and are read twice")
async def test_flights_and_their_copies_are_audited_clean(tmp_path: Path) -> None:
    rows = tmp_path / "rows.parquet"
    table = pq.read_table(FLIGHTS).slice(0, COUNT)
    assert table.num_rows == COUNT
    flown = Counter(table["tailnum"].to_pylist())
    pq.write_table(table, rows)
    inputs = Inputs.looked_at([rows], RULE)
    backfill = BackfillParams(RULE, inputs.files, None).to_json()
    with short_directory() as home:
        endpoint = f"unix:{home / 's'}"
        async with (
            running("--data-dir", str(home / "d"), "--listen", endpoint),
            dss_client.connect(endpoint=endpoint) as client,
        ):
            await client.topics.create("flights", partitions=8)
            await client.topics.create("flights2", partitions=16)
            await driven(
                client,
                CreateJob(
                    "in", "backfill", target="flights", params=backfill, inputs=chunks_of(inputs)
                ),
            )
            await driven(
                client,
                CreateJob(
                    "over", "replay", source="flights", target="flights2", chunk_bytes=CHUNK_BYTES
                ),
            )
            for topic, partitions in (("flights", 8), ("flights2", 16)):
                report = await audited(client, topic)
                assert report.records == COUNT
                assert report.keyless == table["tailnum"].null_count
                assert len(report.streams) == partitions
                assert report.findings == ()
                for each in report.keys:
                    assert each.records <= flown[each.key.decode()] <= each.records_max
