"""Columns of a frame's body, looked at as Arrow has them."""

import pyarrow as pa
import pytest

from dss_core.arrow_layout import HEADERS_TYPE, header_bytes, header_counts

ROWS = [[("a", b"12"), ("bc", b"")], [], [("d", b"345")], [("e" * 30, b"6" * 70)]]
BYTES = [5, 0, 4, 100]


@pytest.mark.parametrize(("start", "end"), [(0, 4), (1, 3), (1, 2), (3, 4), (2, 2)])
def test_headers_of_a_part_of_a_column_are_those_of_its_rows(start: int, end: int) -> None:
    part = pa.array(ROWS, HEADERS_TYPE)[start:end]
    assert header_bytes(part).to_pylist() == BYTES[start:end]
    assert header_counts(part).to_pylist() == [len(row) for row in ROWS[start:end]]
