"""Spark SQL routes as `dss_core.routing` does, for every router and hash."""

import random
from typing import TYPE_CHECKING

from dss_bulk.target import Target
from dss_core.routing import Router, key_hash, partition_of
from dss_spark.routing import HASH, partition_sql
from support.proof_share import only_in_proof

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# What jobs on Spark publish is held against the local engine each time.
pytestmark = only_in_proof

TARGETS = [
    *(Target(Router.BLOCK, p, k) for p, k in [(1, 1), (8, 1), (8, 4), (12, 4), (4096, 64), (7, 7)]),
    *(Target(Router.RANGE, p, 1) for p in (1, 7, 12, 4096)),
]


def test_a_key_goes_to_the_partition_that_the_core_gives(spark: "SparkSession") -> None:
    draw = random.Random(7)
    keys = [b"", b"\x00", *(draw.randbytes(draw.randrange(1, 100)) for _ in range(1_000))]
    frame = spark.createDataFrame([(key,) for key in keys], "key BINARY")
    found = frame.selectExpr(
        f"{HASH} AS h", *(partition_sql(target, HASH, "0L") for target in TARGETS)
    ).collect()
    for key, (hashed, *partitions) in zip(keys, found, strict=True):
        assert hashed % (1 << 64) == key_hash(key)
        assert partitions == [
            partition_of(each.router, key_hash(key), each.partitions, each.factor)
            for each in TARGETS
        ]


def test_the_ends_of_the_hashes_are_routed_without_overflow(spark: "SparkSession") -> None:
    hashes = [0, 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, 0xFFFF_FFFF, 1 << 32]
    signed = [value - (1 << 64) if value >> 63 else value for value in hashes]
    frame = spark.createDataFrame([(value, b"k") for value in signed], "h BIGINT, key BINARY")
    found = frame.selectExpr(*(partition_sql(target, "h", "0L") for target in TARGETS)).collect()
    for hashed, partitions in zip(hashes, found, strict=True):
        assert list(partitions) == [
            partition_of(each.router, hashed, each.partitions, each.factor) for each in TARGETS
        ]


def test_a_record_without_a_key_goes_where_its_number_says(spark: "SparkSession") -> None:
    sql = partition_sql(TARGETS[1], HASH, "n")
    found = spark.range(10).selectExpr("CAST(NULL AS BINARY) AS key", "id AS n").selectExpr(sql)
    assert [row[0] for row in found.collect()] == [n % 8 for n in range(10)]
