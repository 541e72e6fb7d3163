"""The examples of ``docs/spark.md`` work, on a daemon and in folders of this test."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.page_blocks import blocks
from support.proof_share import only_in_proof
from support.spark_source import Filled, at_last, taken

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = Path(__file__).resolve().parents[3] / "docs/spark.md"
ENDPOINT, FOLDER = "unix:/run/dss/dssd.sock", "/data"


@pytest.mark.slow("a query of Spark with a writer and a checkpoint, and another one that counts")
@only_in_proof
def test_the_examples_of_the_page_work(
    spark: "SparkSession",
    orders: Filled,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    [range_of_a_topic, query] = [each.text for each in blocks("docs/spark.md", "python")]
    known: dict[str, Any] = {"spark": spark}

    def run(example: str) -> None:
        assert ENDPOINT in example
        text = example.replace(ENDPOINT, orders.endpoint).replace(FOLDER, str(tmp_path))
        exec(compile(text, PAGE.name, "exec"), known)

    run(range_of_a_topic)
    shown = capsys.readouterr().out
    assert {row[2] for row in orders.rows} == set(re.findall(r"orders/\w+/\w+", shown))
    at_last(lambda: run(query))
    assert taken(spark.read.parquet(str(tmp_path / "orders"))) == orders.rows


def test_the_page_names_every_option_and_every_column() -> None:
    from dss_spark.source.columns import SCHEMA
    from dss_spark.source.options import NAMES

    rows = re.findall(r"^\| (`.*?) \|", PAGE.read_text(), re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert {*NAMES, *SCHEMA.names} <= named
