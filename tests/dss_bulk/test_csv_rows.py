from pathlib import Path

import pyarrow as pa
import pytest

from dss_bulk import csv_rows
from dss_bulk.backfill_work import looked_through
from dss_bulk.inputs import Inputs
from dss_bulk.row_rule import RowRule
from dss_bulk.typed import Types

FILE = "k,n\na,1\nb\n\nc,3,4\nd,4\n"
RULE = RowRule("t", "k")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "rows.csv"
    made.write_text(FILE)
    return made


def test_rows_with_too_few_and_too_many_values_are_rejected_by_their_numbers(path: Path) -> None:
    _, look = looked_through([path], RULE)
    assert look.records == 2
    assert [(each.row, each.reason) for each in look.rejects] == [
        (1, "it has 1 value, its file has 2 columns"),
        (2, "it has 3 values, its file has 2 columns"),
    ]


def test_rows_keep_their_places_beside_rejected_ones(path: Path, tmp_path: Path) -> None:
    whole = tmp_path / "whole.csv"
    whole.write_text("k,n\ne,5\n")
    inputs = Inputs.looked_at([path, whole], RULE)
    assert inputs.rows == 5
    tables = list(inputs.batches(0, 5))
    rows = pa.concat_tables(tables)
    assert rows["k"].to_pylist() == ["a", None, None, "d", "e"]
    assert rows["__row"].to_pylist() == [0, 1, 2, 3, 0]
    sorted_rule = RowRule("t", "k", order=("n",))
    in_order = pa.concat_tables(Inputs(inputs.files, sorted_rule).batches(0, 5))
    assert in_order["k"].to_pylist() == ["a", "d", "e", None, None]


def test_a_file_of_too_many_such_rows_is_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_rows, "REJECTS_MAX", 1)
    with pytest.raises(pa.ArrowInvalid, match="columns"):
        csv_rows.read_csv(path)


def test_a_file_is_read_once_to_be_looked_at_and_through(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other.csv"
    other.write_text("k,n\nf,6\n")
    reads: list[Path] = []

    def counted(path: Path, types: Types | None) -> pa.Table:
        reads.append(path)
        return csv_rows.read_csv(path, types)

    monkeypatch.setattr("dss_bulk.inputs.read_csv", counted)
    inputs, look = looked_through([path, other], RULE)
    assert (inputs.rows, look.records) == (5, 3)
    assert reads == [path, other]
