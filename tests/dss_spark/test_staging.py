"""What tasks of Spark stage: real files, read as the daemon reads them."""

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dss_bulk.copy_rule import CopyRule
from dss_bulk.target import Target
from dss_core.decode import decode
from dss_core.errors import HopLimit, WorkFailed
from dss_core.frame import examine
from dss_core.origin import HOP
from dss_core.routing import Router, key_hash, partition_of
from dss_core.staged import StagedFile, StagedFor, staged_frames
from dss_spark.failures import conditions
from dss_spark.sink import StageSource
from dss_spark.staging import Stage, stage
from support.proof_share import only_in_proof

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Jobs on Spark stage each time what they publish.
pytestmark = only_in_proof

STAGED_FOR = StagedFor(7, 3, 11)
TARGET = Target(Router.BLOCK, 12, 4)
RULE = CopyRule("orders", "copies", "again", 2)
RECORDS = 600


def records(spark: "SparkSession", header: str = "") -> "DataFrame":
    """Records of two streams, some without a key, in no order."""
    headers = "array()" if not header else f"array(struct('{header}' AS name, X'32' AS value))"
    spark.dataSource.register(StageSource)
    return spark.range(0, RECORDS, 1, 4).selectExpr(
        "concat('orders/', id % 3) AS subject",
        "IF(id % 50 = 0, NULL, CAST(concat('k', id % 40) AS BINARY)) AS key",
        "CAST(CAST(id AS STRING) AS BINARY) AS payload",
        f"CAST({headers} AS ARRAY<STRUCT<name: STRING, value: BINARY>>) AS headers",
        "id AS timestamp_us",
        "concat('orders/0/', id % 2) AS stream",
        "id AS offset",
        "1000 + id AS append_time_us",
    )


def staged(frame: "DataFrame", folder: Path, target: Target = TARGET) -> list[StagedFile]:
    plan = Stage(folder, STAGED_FOR, target, folder / "answer.json", RULE)
    return list(stage(frame, plan, number="offset", order=("offset",), at_once=2).files)


def test_tasks_stage_copies_each_once_where_their_key_belongs_and_in_order(
    spark: "SparkSession", tmp_path: Path
) -> None:
    files = staged(records(spark), tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {file.name for file in files}
    found: dict[int, list[int]] = {}
    for file in files:
        read = staged_frames(tmp_path / file.name, STAGED_FOR, file.bytes)
        for frame in (bytes(frame) for frames in read for frame in frames):
            partition, rows = examine(frame).header.partition, decode(frame)
            of = found.setdefault(partition, [])
            for row, key in enumerate(rows.keys):
                number = int(rows.payloads[row])
                of.append(number)
                assert rows.subjects[row] == f"copies/{number % 3}"
                assert rows.timestamps_us[row] == number
                headers = dict(rows.headers[row])
                assert headers["dss-origin"] == b"orders/0/%d@%d" % (number % 2, number)
                assert headers["dss-origin-us"] == b"%d" % (1_000 + number)
                wanted = (
                    number % 12
                    if key is None
                    else partition_of(TARGET.router, key_hash(key), 12, 4)
                )
                assert partition == wanted
    assert all(numbers == sorted(numbers) for numbers in found.values())
    assert sorted(chain.from_iterable(found.values())) == list(range(RECORDS))
    assert sum(file.records for file in files) == RECORDS


def test_a_record_that_breaks_a_rule_ends_the_work_with_its_condition_and_no_file(
    spark: "SparkSession", tmp_path: Path
) -> None:
    with pytest.raises(HopLimit):
        staged(records(spark, HOP), tmp_path)
    assert list(tmp_path.iterdir()) == []


@only_in_proof
def test_a_task_that_does_not_see_the_staging_directory_fails_the_work(
    spark: "SparkSession", tmp_path: Path
) -> None:
    with pytest.raises(WorkFailed, match="No such file or directory"), conditions("again"):
        staged(records(spark), tmp_path / "of another host")
    assert list(tmp_path.iterdir()) == []


def test_a_frame_without_records_stages_no_file(spark: "SparkSession", tmp_path: Path) -> None:
    assert staged(records(spark).where("offset < 0"), tmp_path) == []
