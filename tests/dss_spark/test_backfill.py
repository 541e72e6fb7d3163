"""Backfills on Spark publish what the local engine publishes, record for record."""

import errno
import json
import os
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dss_client
from dss_bulk.backfill_work import BackfillParams, chunks_of
from dss_bulk.driver import Engine, drive
from dss_bulk.inputs import Inputs
from dss_bulk.local_engine import LOCAL
from dss_bulk.row_rule import RowRule
from dss_client import Client
from dss_client.changes import CreateJob
from dss_core.errors import RowsRefused, SubjectOutsideTopic
from dss_spark.backfill import BackfillOnSpark
from dss_spark.engine import SparkEngine
from dss_spark.work import OnSpark
from support.daemon_process import running, short_directory
from support.proof_share import only_in_proof, share

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 700
Done = TypeVar("Done")
Published = list[tuple[object, ...]]


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    """Of a daemon without a topic."""
    with short_directory() as home:
        endpoint = f"unix:{home / 's'}"
        async with (
            running("--data-dir", str(home / "d"), "--listen", endpoint),
            dss_client.connect(endpoint=endpoint) as connected,
        ):
            yield connected


@pytest.fixture
def engine(spark: "SparkSession") -> Engine:
    """On the session of all tests."""
    return SparkEngine(lambda: spark, "spark of a test")


def inputs_in(folder: Path, kind: str = "parquet") -> list[Path]:
    """A Parquet file of many row groups, and one more; or two files of text with the same rows."""
    columns = {
        "k": [None if n % 100 == 7 else f"k{n % 13}" for n in range(ROWS)],
        "n": list(range(ROWS)),
        "at": [float(n % 5) if n % 11 else None for n in range(ROWS)],
    }
    table = pa.table(columns)
    if kind != "parquet":
        return [texts(folder / f"{at}.{kind}", table[at * 350 :][:350]) for at in range(2)]
    pq.write_table(table.slice(0, 500), folder / "1.parquet", row_group_size=64)
    pq.write_table(table.slice(500), folder / "2.parquet")
    return [folder / "1.parquet", folder / "2.parquet"]


def texts(path: Path, table: pa.Table) -> Path:
    """Rows as lines; one of them cannot be read."""
    if path.suffix == ".csv":
        lines = [
            ",".join("" if v is None else str(v) for v in row.values()) for row in table.to_pylist()
        ]
        lines = [",".join(table.column_names), *lines, "too,few"]
    else:
        lines = [*(json.dumps(row) for row in table.to_pylist()), '{"k":NaN}']
    path.write_text("\n".join(lines))
    return path


async def backfilled(
    client: Client,
    topic: str,
    rule: RowRule,
    files: Sequence[Path],
    engine: Engine,
    rejects: Path | None = None,
) -> Published:
    """What a backfill publishes, partition by partition."""
    await client.topics.create(topic, partitions=5)
    inputs = Inputs.looked_at(files, rule)
    params = BackfillParams(rule, inputs.files, None if rejects is None else str(rejects))
    change = CreateJob(
        f"to-{topic}", "backfill", target=topic, params=params.to_json(), inputs=chunks_of(inputs)
    )
    await client.operations.apply(await client.operations.plan(change), reason="a test")
    job = await drive(client, change.name, engine=engine)
    assert job.state == "done"
    return [
        (record.stream.partition("/")[2], record.key, record.subject, record.payload)
        async for record in client.read(f"{topic}/#")
    ]


def by_stream(published: Published) -> dict[object, Published]:
    found: dict[object, Published] = {}
    for stream, *record in published:
        found.setdefault(stream, []).append(tuple(record))
    return found


TEXTS = [(("n",), "csv"), ((), "jsonl"), (("n",), "jsonl")]
PARQUET: list[tuple[tuple[str, ...], str]] = [((), "parquet")]


@pytest.mark.parametrize(
    ("order", "kind"), share(PARQUET, [*PARQUET, (("at", "n"), "parquet"), *TEXTS])
)
async def test_both_engines_publish_the_same_records_in_the_same_order_of_keys(
    client: Client, engine: Engine, tmp_path: Path, order: tuple[str, ...], kind: str
) -> None:
    files = inputs_in(tmp_path, kind)
    types = () if kind == "parquet" else (("n", "int64"),)
    found = []
    for name, one in (("a", LOCAL), ("b", engine)):
        rule = RowRule(name, "k", subject=f"{name}/{{k}}", order=order, types=types)
        rejects = tmp_path / f"rejects-{name}"
        published = await backfilled(client, name, rule, files, one, rejects)
        texts = [path.read_text() for path in sorted(rejects.iterdir())]
        rejected = sorted(line for text in texts for line in text.splitlines())
        found.append((by_stream(published), rejected))
    (mine, my_rejects), (theirs, their_rejects) = found
    assert mine.keys() == theirs.keys()
    for stream, records in mine.items():
        assert [(key, payload) for key, _, payload in records] == [
            (key, payload) for key, _, payload in theirs[stream]
        ]
    rows = ROWS + (0 if kind == "parquet" else 2)
    assert sum(map(len, mine.values())) == rows - len(my_rejects)
    assert my_rejects == their_rejects


class OnFull(OnSpark):
    """The first piece of work meets a full disk."""

    met = False

    async def run(self, work: Callable[[], Done]) -> Done:
        if not self.met:
            self.met = True
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return await super().run(work)


@pytest.mark.slow("rows are sorted by Spark")
@only_in_proof
async def test_rows_are_looked_through_again_once_there_is_room(
    client: Client, spark: "SparkSession", tmp_path: Path
) -> None:
    await client.topics.create("late", partitions=2)
    rule = RowRule("late", "k", order=("n",))
    inputs = Inputs.looked_at(inputs_in(tmp_path), rule)
    params = BackfillParams(rule, inputs.files, str(tmp_path / "rejects")).to_json()
    change = CreateJob("in", "backfill", target="late", params=params, inputs=chunks_of(inputs))
    await client.operations.apply(await client.operations.plan(change), reason="a test")
    async with client.jobs.drive("in", driver="a test") as lease:
        on = SparkEngine(lambda: spark, "spark of a test")
        async with on.opened(lease.job):
            work = BackfillOnSpark(OnFull(spark, lease.granted, tmp_path), lease.granted)
            chunk = await anext(lease.open_chunks())
            with pytest.raises(OSError, match="No space"):
                await work.chunk(chunk, last=True)
            assert (await work.chunk(chunk, last=True)).records == ROWS - ROWS // 100


@only_in_proof
async def test_a_row_that_makes_no_record_or_a_subject_outside_ends_the_job_with_nothing_published(
    client: Client, engine: Engine, tmp_path: Path
) -> None:
    files = inputs_in(tmp_path)
    with pytest.raises(RowsRefused, match="row 7"):
        await backfilled(client, "strict", RowRule("strict", "k"), files, engine)
    outside = RowRule("out", "k", "keyless", "elsewhere/{n}")
    with pytest.raises(SubjectOutsideTopic):
        await backfilled(client, "out", outside, files, engine)
    for job, topic in (("to-strict", "strict"), ("to-out", "out")):
        assert (await client.jobs.get(job)).state == "failed"
        assert [record async for record in client.read(f"{topic}/#")] == []
