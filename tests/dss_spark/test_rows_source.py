"""What becomes of each row of a file in tasks of Spark, which need no cluster for that."""

from pathlib import Path

import pytest

from dss_bulk.backfill_work import BackfillParams
from dss_bulk.inputs import Inputs
from dss_bulk.row_rule import RowRule
from dss_spark.rows_source import RowsSource
from support.backfill_cases import CASES, Case

READ = [case for case in CASES if not case.refused]


@pytest.mark.parametrize("case", READ, ids=lambda case: case.name)
def test_each_row_is_one_record_or_one_reject(case: Case, tmp_path: Path) -> None:
    inputs = Inputs.looked_at([case.write(tmp_path)], case.rule)
    params = BackfillParams(case.rule, inputs.files, None).to_json()
    options = {"params": params, "now_us": "5", "start": "0", "end": str(inputs.rows)}
    reader = RowsSource(options).reader(None)
    batches = [each for part in reader.partitions() for each in reader.read(part)]
    rows = sorted((row for each in batches for row in each.to_pylist()), key=lambda row: row["at"])
    records = [row for row in rows if row["reject"] is None]
    rejects = {row["row"]: row["reject"] for row in rows if row["reject"] is not None}
    assert [(row["key"], row["payload"]) for row in records] == list(case.records)
    assert rejects.keys() == dict(case.rejects).keys()
    assert [reason for row, reason in rejects.items() if case.rejects[row] not in reason] == []
    if case.times_us:
        assert [row["timestamp_us"] for row in records] == list(case.times_us)


def test_rows_of_json_lines_are_sorted_by_what_is_said_of_them(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"k":"a","n":10}\n{"k":"b","n":9}\n{"k":"c"}\n')
    rule = RowRule("t", "k", order=("n",), types=(("n", "int64"),))
    inputs = Inputs.looked_at([tmp_path / "x.jsonl"], rule)
    params = BackfillParams(rule, inputs.files, None).to_json()
    source = RowsSource({"params": params, "now_us": "5", "start": "0", "end": "3"})
    assert source.schema().endswith(", __order0 BIGINT")
    reader = source.reader(None)
    [batch] = [each for part in reader.partitions() for each in reader.read(part) if each.num_rows]
    assert batch.column("__order0").to_pylist() == [10, 9, None]
    [local] = inputs.batches(0, 3)
    assert local["k"].to_pylist() == ["b", "a", "c"]
