from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from dss_bulk import backfill_work
from dss_bulk.inputs import Inputs
from dss_bulk.row_rule import RowRule
from dss_bulk.typed import Types
from dss_core.errors import InputRefused

RULE = RowRule("t", "k")


def parquet(path: Path, **columns: object) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def values(inputs: Inputs, start: int, end: int, column: str = "k") -> list[object]:
    return [value for table in inputs.batches(start, end) for value in table[column].to_pylist()]


def test_rows_of_all_files_are_one_sequence(tmp_path: Path) -> None:
    one = parquet(tmp_path / "1.parquet", k=["a", "b", "c"])
    two = parquet(tmp_path / "2.parquet", k=["d", "e"])
    inputs = Inputs.looked_at([one, two], RULE)
    assert inputs.rows == 5
    assert values(inputs, 0, 5) == ["a", "b", "c", "d", "e"]
    assert values(inputs, 2, 4) == ["c", "d"]
    assert values(inputs, 2, 4, "__file") == [0, 1]
    assert values(inputs, 2, 4, "__row") == [2, 0]
    assert values(inputs, 5, 5) == []


def test_order_columns_sort_over_all_files_and_ties_keep_their_places(tmp_path: Path) -> None:
    one = parquet(tmp_path / "1.parquet", k=["a", "b"], at=[2, 1])
    two = parquet(tmp_path / "2.parquet", k=["c", "d"], at=[1, 0])
    inputs = Inputs.looked_at([one, two], RowRule("t", "k", order=("at",)))
    assert values(inputs, 0, 4) == ["d", "b", "c", "a"]
    assert values(inputs, 1, 3) == ["b", "c"]


def test_an_order_column_that_has_no_order_is_refused(tmp_path: Path) -> None:
    path = parquet(tmp_path / "1.parquet", k=["a", "b"], at=[[2], [1]])
    inputs = Inputs.looked_at([path], RowRule("t", "k", order=("at",)))
    with pytest.raises(InputRefused, match="sorted by at"):
        list(inputs.batches(0, 2))


@pytest.mark.parametrize("name", ["x.csv", "x.jsonl"])
@pytest.mark.parametrize(
    ("types", "numbers"), [((), ["01", "2"]), ((("n", "int64"),), [1, 2]), (None, [1, 2])]
)
def test_csv_and_json_lines_are_text_unless_types_are_said_or_were_guessed(
    tmp_path: Path, name: str, types: Types | None, numbers: list[object]
) -> None:
    rows = {"x.csv": "k,n\na,01\nb,2\n", "x.jsonl": '{"k":"a","n":"01"}\n{"k":"b","n":"2"}\n'}
    if types is None:
        rows["x.jsonl"] = rows["x.jsonl"].replace('"01"', "1").replace('"2"', "2")
    (tmp_path / name).write_text(rows[name])
    inputs = Inputs.looked_at([tmp_path / name], RowRule("t", "k", subject="{n}", types=types))
    assert values(inputs, 0, 2) == ["a", "b"]
    assert values(inputs, 0, 2, "n") == numbers


@pytest.mark.parametrize(
    ("types", "order"), [((), ["10", "9", None]), ((("n", "int64"),), [9, 10, None])]
)
def test_rows_are_sorted_by_what_is_said_of_their_columns(
    tmp_path: Path, types: Types, order: list[object]
) -> None:
    rule = RowRule("t", "k", order=("n",), types=types)
    (tmp_path / "x.csv").write_text("k,n\na,9\nb,\nc,10\n")
    assert values(Inputs.looked_at([tmp_path / "x.csv"], rule), 0, 3, "n") == order
    (tmp_path / "x.jsonl").write_text('{"k":"a","n":"9"}\n{"k":"b"}\n{"k":"c","n":"10"}\n')
    assert values(Inputs.looked_at([tmp_path / "x.jsonl"], rule), 0, 3, "n") == order


def test_a_column_that_is_empty_in_one_of_two_csv_files_is_the_same_column(tmp_path: Path) -> None:
    for name, row in (("1.csv", "a,1"), ("2.csv", "b,")):
        (tmp_path / name).write_text(f"k,n\n{row}\n")
    inputs = Inputs.looked_at([tmp_path / "1.csv", tmp_path / "2.csv"], RULE)
    assert values(inputs, 0, 2, "n") == ["1", None]


def test_json_lines_stand_beside_no_other_files(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("k\na\n")
    (tmp_path / "2.jsonl").write_text('{"k":"a"}\n')
    with pytest.raises(InputRefused, match="a job of their own"):
        Inputs.looked_at([tmp_path / "1.csv", tmp_path / "2.jsonl"], RULE)


@pytest.mark.parametrize("name", ["x.parquet", "x.csv"])
def test_long_rows_make_smaller_chunks(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backfill_work, "BACKFILL_CHUNK_BYTES", 1 << 16)
    table = pa.table({"k": ["x" * 5_000] * 100})
    if name == "x.csv":
        pyarrow.csv.write_csv(table, tmp_path / name)
    else:
        pq.write_table(table, tmp_path / name)  # there it is once
    inputs, _ = backfill_work.looked_through([tmp_path / name], RULE)
    chunks = backfill_work.chunks_of(inputs)
    assert {each.records for each in chunks[:-1]} <= {12, 13}
    assert sum(each.records for each in chunks) == 100


def test_of_thousands_of_columns_an_error_names_some(tmp_path: Path) -> None:
    path = parquet(tmp_path / "1.parquet", **{f"c{n}": [n] for n in range(2_000)})
    with pytest.raises(InputRefused, match="c19 and 1,980 more"):
        Inputs.looked_at([path], RULE)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"k": ["a"], "n": [1.5]}, "n is double, and int64 in the first"),
        ({"k": ["a"]}, "it has no column n"),
        ({"k": ["a"], "n": [1], "m": [1]}, "the first file has no m"),
        ({"n": [1], "k": ["a"]}, "another order"),
    ],
)
def test_files_with_other_columns_than_the_first_are_refused(
    tmp_path: Path, other: dict[str, object], said: str
) -> None:
    one = parquet(tmp_path / "1.parquet", k=["a"], n=[1])
    two = parquet(tmp_path / "2.parquet", **other)
    with pytest.raises(InputRefused, match=said):
        Inputs.looked_at([one, two], RULE)


def test_a_column_that_is_not_there_is_told_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(InputRefused, match="no column k, but a, b"):
        Inputs.looked_at([parquet(tmp_path / "1.parquet", a=[1], b=[2])], RULE)


@pytest.mark.parametrize("name", ["broken.parquet", "absent.parquet", "x.txt"])
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, name: str) -> None:
    if name == "broken.parquet":
        (tmp_path / name).write_bytes(b"PAR1 not really")
    with pytest.raises(InputRefused, match=name):
        Inputs.looked_at([tmp_path / name], RULE)


@pytest.mark.parametrize("name", ["all", "all.parquet"])
def test_a_folder_is_refused_by_what_it_is(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(InputRefused, match=f"{name} .*it is a folder"):
        Inputs.looked_at([tmp_path / name], RULE)


def test_a_file_that_changed_since_the_plan_is_refused(tmp_path: Path) -> None:
    path = parquet(tmp_path / "1.parquet", k=["a"])
    inputs = Inputs(Inputs.looked_at([path], RULE).files, RULE)
    inputs.require_unchanged()
    parquet(path, k=["a", "b"])
    with pytest.raises(InputRefused, match="changed"):
        inputs.require_unchanged()
    path.unlink()
    with pytest.raises(InputRefused):
        inputs.require_unchanged()


def test_a_file_that_cannot_be_read_is_told_of_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputRefused) as missing:
        Inputs.looked_at([tmp_path / "no.parquet"], RULE)
    assert missing.value.message.endswith(" cannot be backfilled: No such file or directory.")
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"PAR1" + bytes(100))
    with pytest.raises(InputRefused) as bad:
        Inputs.looked_at([broken], RULE)
    assert bad.value.message.endswith("file).")
