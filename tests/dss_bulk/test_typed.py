from pathlib import Path

import pyarrow as pa
import pytest

from dss_bulk.typed import arrow_type, converted, types_given
from dss_core.errors import IllegalArgument, InputRefused


def test_types_are_given_by_columns_and_by_files_of_them(tmp_path: Path) -> None:
    path = tmp_path / "types"
    path.write_text("n=int64\n\n a=b=timestamp[us, UTC]\n")
    given = types_given([str(path), "d=decimal128(10, 2)"])
    assert given == (("n", "int64"), ("a=b", "timestamp[us, UTC]"), ("d", "decimal128(10, 2)"))
    assert [arrow_type(kind) for _, kind in given] == [
        pa.int64(),
        pa.timestamp("us", "UTC"),
        pa.decimal128(10, 2),
    ]


@pytest.mark.parametrize("word", ["n=number", "n=", "n=int64 ", "n=decimal128(99, 2)", "n=list"])
def test_a_word_that_is_no_type_is_refused_with_those_that_are(word: str) -> None:
    with pytest.raises(IllegalArgument, match=r"timestamp\[us\]"):
        types_given([word])


def test_a_column_twice_and_a_file_that_is_not_there_are_refused(tmp_path: Path) -> None:
    with pytest.raises(IllegalArgument, match="twice"):
        types_given(["n=int64", "n=string"])
    with pytest.raises(InputRefused, match="No such file"):
        types_given([str(tmp_path / "none")])
    (tmp_path / "types").write_text("n int64\n")
    with pytest.raises(IllegalArgument, match="write COLUMN=TYPE"):
        types_given([str(tmp_path / "types")])


def test_values_of_another_type_are_named_by_their_rows() -> None:
    column = pa.chunked_array([["1", "x", None], ["4", "5", "", "007"]])
    values, wrong = converted(column, pa.int64())
    assert values.to_pylist() == [1, None, None, 4, 5, None, 7]
    assert wrong == [1, 5]
