import asyncio
import json
import pickle
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import dss_client.sync
from dss_client.changes import AddStorageTopic, GrowTopic
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


def offsets(kept: Mapping[str, Any]) -> list[int]:
    return [place["offset"] for stream, place in kept.items() if "/" in stream]


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
    ends = {stream: place["offset"] for stream, place in end.items() if "/" in stream}
    assert found == [row[:2] for row in orders.rows if row[1] < ends[row[0]]]
    assert query.partitions(end, end) == []


def test_a_query_begins_where_it_is_told(orders: Filled) -> None:
    ends = offsets(reader(orders, start="latest").initialOffset())
    assert sum(ends) == len(orders.rows)
    assert offsets(reader(orders, start="-1h").initialOffset()) == [0, 0]
    assert offsets(reader(orders, start='{"orders/0/1": 7}').initialOffset()) == [0, 7]
    some = reader(orders, streams="orders/0/1").initialOffset()
    assert [stream for stream in some if "/" in stream] == ["orders/0/1"]


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


def grow(client: dss_client.sync.Client, topic: str, partitions: int) -> None:
    applied = client.operations.apply(GrowTopic(topic, partitions), reason="a test")
    assert client.operations.ended(applied.number).state == "done"


def batches_of(query: "DssStreamReader", start: dict[str, Any]) -> Iterator[list[str]]:
    """Places of the records of each batch from some offsets on, up to what is there."""
    limit = query.getDefaultReadLimit()
    while (end := query.latestOffset(start, limit)) != start:
        tables = [
            pa.Table.from_batches(query.read(partition))
            for partition in query.partitions(start, end)
        ]
        yield [
            f"{stream}@{offset}"
            for table in tables
            for stream, offset in zip(*table.to_pydict().values(), strict=True)
        ]
        start = end


def test_a_query_goes_on_into_a_storage_topic_that_took_over(
    orders: Filled, client: dss_client.sync.Client
) -> None:
    topic = Filled(orders.endpoint, "wider", [])
    client.topics.create("wider", partitions=1)
    produce(client, "wider", range(5))
    begun = reader(topic, columns="stream,offset", records_per_batch="4")
    start = begun.latestOffset(begun.initialOffset(), begun.getDefaultReadLimit())
    grow(client, "wider", 2)
    produce(client, "wider", range(5, 8))
    added = client.operations.apply(AddStorageTopic("wider", 3), reason="a test")
    assert client.operations.ended(added.number).state == "done"
    # As Spark makes it anew from its checkpoint.
    again = reader(topic, columns="stream,offset", records_per_batch="4")
    [rest, newer] = batches_of(again, json.loads(json.dumps(start)))
    assert rest == ["wider/0/0@4"]
    rows = rows_of(client, "wider")
    assert sorted(newer) == [f"{row[0]}@{row[1]}" for row in rows if row[0].startswith("wider/1")]
    # From the beginning, and from a time behind which nothing of the older one came.
    everything = list(batches_of(again, again.initialOffset()))
    assert [len(batch) for batch in everything] == [4, 1, 3]
    begins_us = client.topics.describe("wider").storage_topics[1].begins_us
    later = reader(topic, columns="stream,offset", start=f"@{begins_us / 1_000_000:.6f}")
    [only] = batches_of(later, later.initialOffset())
    assert sorted(only) == sorted(newer)


def test_a_checkpoint_of_other_data_is_refused(orders: Filled) -> None:
    query = reader(orders)
    start = query.initialOffset()
    other = {**start, "incarnation": "00" * 16}
    with pytest.raises(DssError) as refused:
        query.latestOffset(other, query.getDefaultReadLimit())
    assert refused.value.code == "DSS7060"
    with pytest.raises(DssError):
        query.partitions(start, other)


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
        grow(client, "orders", 3)
        produce(client, "orders", range(300, 400))
        rows = rows_of(client, "orders")
    at_last(run)
    with dss_client.sync.connect(endpoint=restarted.endpoint) as client:
        grow(client, "orders", 2)
    # A batch without records: that the older streams were read to their ends is in the checkpoint.
    at_last(run)
    newest = max((checkpoint / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    assert newest.read_text().count('"end": true') == 5
    # As if Spark's driver had died after the last batch was written, and before it was noted.
    last = max((checkpoint / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    last.unlink()
    (last.parent / f".{last.name}.crc").unlink(missing_ok=True)
    at_last(run)
    assert len(rows) == 400
    assert taken(spark.read.parquet(target)) == rows
