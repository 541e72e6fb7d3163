import asyncio
import pickle
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import dss_client.sync
from dss_core.errors import DssError
from dss_spark.source.options import SourceOptions
from support.daemon_process import DaemonProcess, short_directory
from support.prerequisites import need_spark
from support.spark_source import Filled, at_last, produce, rows_of, taken

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dss_spark.source.stream import DssStreamReader


def reader(orders: Filled, **options: str) -> "DssStreamReader":
    """As Spark gets it, which sends it to other processes."""
    need_spark()
    from dss_spark.source.stream import DssStreamReader

    given = {"topic": orders.topic, "endpoint": orders.endpoint, **options}
    made = DssStreamReader(SourceOptions.of(given).for_stream())
    copy = pickle.loads(pickle.dumps(made))
    assert isinstance(copy, DssStreamReader)
    return copy


def offsets(places: Mapping[str, Mapping[str, int]]) -> list[int]:
    return [place["offset"] for place in places.values()]


def test_a_batch_reads_between_its_offsets(orders: Filled) -> None:
    query = reader(orders, records_per_batch="100", columns="stream,offset")
    start = query.initialOffset()
    assert offsets(start) == [0, 0]
    end = query.latestOffset(start, query.getDefaultReadLimit())
    assert sum(offsets(end)) == 100
    assert query.latestOffset(start, query.getDefaultReadLimit()) == end
    batches = [
        batch
        for partition in query.partitions(start, end)
        for batch in pickle.loads(pickle.dumps(query)).read(partition)
    ]
    columns = pa.Table.from_batches(batches).to_pydict()
    found = sorted(zip(columns["stream"], columns["offset"], strict=True))
    ends = dict(zip(end, offsets(end), strict=True))
    assert found == [row[:2] for row in orders.rows if row[1] < ends[row[0]]]
    assert query.partitions(end, end) == []


def test_a_query_begins_where_it_is_told(orders: Filled) -> None:
    ends = offsets(reader(orders, start="latest").initialOffset())
    assert sum(ends) == len(orders.rows)
    assert offsets(reader(orders, start="-1h").initialOffset()) == [0, 0]
    assert offsets(reader(orders, start='{"orders/0/1": 7}').initialOffset()) == [0, 7]
    assert list(reader(orders, streams="orders/0/1").initialOffset()) == ["orders/0/1"]


def test_what_comes_later_is_not_taken_by_a_query_of_what_is_there(
    orders: Filled, client: dss_client.sync.Client
) -> None:
    topic = Filled(orders.endpoint, "grows", [])
    client.topics.create("grows", partitions=2)
    produce(client, "grows", range(10))
    query = reader(topic)
    query.prepareForTriggerAvailableNow()
    produce(client, "grows", range(5))
    start = query.initialOffset()
    end = query.latestOffset(start, query.getDefaultReadLimit())
    assert sum(offsets(end)) == 10
    assert query.latestOffset(end, query.getDefaultReadLimit()) == end
    assert sum(offsets(query.reportLatestOffset())) == 15


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"end": "now"}, "DSS1010"),
        ({"records_per_batch": "0"}, "DSS1010"),
        ({"fail_on_loss": "perhaps"}, "DSS1010"),
        ({"topic": "none"}, "DSS2001"),
    ],
)
def test_a_query_is_refused_with_its_code(
    orders: Filled, options: dict[str, str], code: str
) -> None:
    with pytest.raises(DssError) as refused:
        reader(orders, **options).initialOffset()
    assert refused.value.code == code


class Restarted:
    """A daemon that can be killed, and started again."""

    def __init__(self, runner: asyncio.Runner, home: Path) -> None:
        self._runner = runner
        self.endpoint = f"unix:{home / 's'}"
        self._arguments = ("--data-dir", str(home / "d"), "--listen", self.endpoint)
        self.start()

    def start(self) -> None:
        self._daemon = self._runner.run(DaemonProcess.start(*self._arguments))

    def kill(self) -> None:
        self._runner.run(self._daemon.kill())


@pytest.fixture
def restarted() -> Iterator[Restarted]:
    with asyncio.Runner() as runner, short_directory() as home:
        daemon = Restarted(runner, home)
        yield daemon
        daemon.kill()


@pytest.mark.slow("queries of Spark, each with a writer and a checkpoint")
def test_a_query_goes_on_from_its_checkpoint_with_every_record_once(
    spark: "SparkSession", restarted: Restarted, tmp_path: Path
) -> None:
    checkpoint, target = tmp_path / "checkpoint", str(tmp_path / "target")

    def run() -> None:
        source = spark.readStream.format("dss").option("endpoint", restarted.endpoint)
        source = source.option("topic", "orders").option("records_per_batch", "150")
        writer = source.load().writeStream.option("checkpointLocation", str(checkpoint))
        query = writer.trigger(availableNow=True).format("parquet").start(target)
        query.awaitTermination()

    with dss_client.sync.connect(endpoint=restarted.endpoint) as client:
        client.topics.create("orders", partitions=2)
        produce(client, "orders", range(200))
    at_last(run)
    restarted.kill()
    restarted.start()
    with dss_client.sync.connect(endpoint=restarted.endpoint) as client:
        produce(client, "orders", range(200, 300))
        rows = rows_of(client, "orders")
    # As if Spark's driver had died after the last batch was written, and before it was noted.
    last = max((checkpoint / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    last.unlink()
    (last.parent / f".{last.name}.crc").unlink(missing_ok=True)
    at_last(run)
    assert len(rows) == 300
    assert taken(spark.read.parquet(target)) == rows
