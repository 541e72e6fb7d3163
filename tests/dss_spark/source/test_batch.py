import asyncio
import json
import time
from typing import TYPE_CHECKING

import pytest

import dss_client
import dss_client.sync
from dss_client.changes import GrowTopic
from dss_client.topics import LocatedRange
from dss_core.errors import DssError
from dss_spark.source.conditions import Bounds, Conditions
from dss_spark.source.options import SourceOptions
from dss_spark.source.planning import planned
from dss_spark.source.slices import Sized, sliced
from support.proof_share import only_in_proof
from support.spark_source import Filled, produce, rows_of, taken

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVERYTHING = Conditions()


@pytest.mark.slow("the first of a session of Spark: a JVM, and all that it compiles")
def test_every_record_comes_once_and_whole(spark: "SparkSession", orders: Filled) -> None:
    slice_bytes = 1 << 13
    assert len(sliced(ranges_of(orders), slice_bytes)) > 2
    frame = orders.read(spark, bytes_per_partition=slice_bytes)
    right = "append_time >= time AND (key IS NULL OR key_hash = xxhash64(key))"
    assert taken(frame.where(right)) == orders.rows


@only_in_proof
def test_ranges_are_read_as_a_chunk_of_a_job_names_them(
    spark: "SparkSession", orders: Filled, client: dss_client.sync.Client
) -> None:
    [first, second] = client.topics.locate("orders")
    ranges = json.dumps([part(first, 3, 50), part(second, 0, 7)])
    source = spark.read.format("dss").option("endpoint", orders.endpoint)
    found = taken(source.option("ranges", ranges).load())
    kept = {first.stream: range(3, 50), second.stream: range(7)}
    assert found == [row for row in orders.rows if row[1] in kept[row[0]]]


def part(whole: LocatedRange, start: int, end: int) -> dict[str, object]:
    return {
        "stream": whole.stream,
        "storage_topic_id": whole.storage_topic_id,
        "partition": whole.partition,
        "start": start,
        "end": end,
    }


@only_in_proof
def test_only_what_is_asked_for_comes(spark: "SparkSession", orders: Filled) -> None:
    frame = orders.read(spark, columns="offset, subject", subject="orders/us/+")
    assert frame.columns == ["offset", "subject"]
    condition = "offset >= 20 AND subject LIKE 'orders/us/1%'"
    found = sorted(tuple(row) for row in frame.where(condition).collect())
    wanted = [row[1:3] for row in orders.rows if row[2].startswith("orders/us/1") and row[1] >= 20]
    assert found == sorted(wanted)


def test_spark_shows_the_code_of_an_error(spark: "SparkSession", orders: Filled) -> None:
    with pytest.raises(Exception, match="DSS1010"):
        orders.read(spark, strat="now")
    with pytest.raises(Exception, match="DSS2015"):
        orders.read(spark, streams="orders/0/1", end="=70000").count()


def ranges_of(orders: Filled, wanted: Conditions = EVERYTHING, **options: str) -> list[Sized]:
    """What is planned, with nothing of Spark."""

    async def plan() -> list[Sized]:
        given = SourceOptions.of({"topic": orders.topic, **options})
        async with dss_client.connect(endpoint=orders.endpoint) as client:
            return await planned(client, given, wanted)

    return asyncio.run(plan())


def records_in(ranges: list[Sized]) -> int:
    return sum(each.range.end - each.range.start for each in ranges)


def test_offsets_times_and_streams_say_which_ranges_are_read(orders: Filled) -> None:
    [one] = ranges_of(orders, streams="orders/0/1", start="=10", end='{"orders/0/1": 20}')
    assert (one.range.stream, one.range.start, one.range.end) == ("orders/0/1", 10, 20)
    assert records_in(ranges_of(orders)) == len(orders.rows)
    assert records_in(ranges_of(orders, start="-1h")) == len(orders.rows)
    assert records_in(ranges_of(orders, start=f"@{time.time() + 60:.0f}")) == 0
    assert records_in(ranges_of(orders, end="-1h")) == 0


def test_a_key_a_stream_a_time_and_offsets_leave_ranges_out(orders: Filled) -> None:
    home = {row[0] for row in orders.rows if row[3] == b"k3"}
    found = ranges_of(orders, Conditions(keys=frozenset({b"k3"})))
    assert {each.range.stream for each in found} == home
    found = ranges_of(orders, Conditions(streams=frozenset({"orders/0/0"})))
    assert [each.range.stream for each in found] == ["orders/0/0"]
    assert records_in(ranges_of(orders, Conditions(append_us=Bounds(end=1)))) == 0
    assert records_in(ranges_of(orders, Conditions(offsets=Bounds(5, 9)))) == 8


def test_a_grown_topic_is_read_whole_and_a_time_or_a_key_names_its_ranges_in_each_storage_topic(
    client: dss_client.sync.Client, orders: Filled
) -> None:
    client.topics.create("wider", partitions=2)
    produce(client, "wider", range(20))
    growing = client.operations.apply(GrowTopic("wider", 3), reason="a test")
    assert client.operations.ended(growing.number).state == "done"
    produce(client, "wider", range(20, 50))
    wider = Filled(orders.endpoint, "wider", rows_of(client, "wider"))
    assert records_in(ranges_of(wider)) == len(wider.rows) == 50
    began_us = client.topics.describe("wider").storage_topics[1].begins_us
    since = f"@{began_us / 1_000_000:.6f}"
    # Both ends of a time are one for the topic: what was sealed before stays outside.
    assert records_in(ranges_of(wider, start=since)) == 30
    assert records_in(ranges_of(wider, end=since)) == 20
    home = {row[0] for row in wider.rows if row[3] == b"k3"}
    found = ranges_of(wider, Conditions(keys=frozenset({b"k3"})))
    assert {each.range.stream for each in found} >= home
    assert [name_of(each) for each in found] == ["wider/0", "wider/1"]


def name_of(sized: Sized) -> str:
    """Of the storage topic."""
    return sized.range.stream.rpartition("/")[0]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"columns": "offset,colour"}, "DSS1010"),
        ({"start": "=3"}, "DSS1010"),
        ({"ranges": "[]"}, "DSS1010"),
        ({"start": '{"orders/0/1": -1}'}, "DSS1010"),
        ({"start": "yesterday-ish"}, "DSS1013"),
        ({"topic": "none"}, "DSS2001"),
        ({"streams": "orders/0/7"}, "DSS2011"),
        ({"streams": "orders/0/1", "end": "=70000"}, "DSS2015"),
        ({"subject": "a/#/b"}, "DSS1002"),
    ],
)
def test_a_plan_is_refused_with_its_code(
    orders: Filled, options: dict[str, str], code: str
) -> None:
    with pytest.raises(DssError) as refused:
        ranges_of(orders, EVERYTHING, **options)
    assert refused.value.code == code
