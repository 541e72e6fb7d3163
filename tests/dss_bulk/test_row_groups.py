from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dss_bulk.row_groups import rows_of
from dss_core.errors import InputRefused

ROWS = 23


@pytest.fixture
def path(tmp_path: Path) -> Path:
    pq.write_table(pa.table({"n": range(ROWS)}), tmp_path / "x.parquet", row_group_size=5)
    return tmp_path / "x.parquet"


def test_rows_are_those_of_their_numbers_whatever_the_row_groups_are(path: Path) -> None:
    for start in range(ROWS):
        for end in range(start, ROWS + 1):
            assert rows_of(path, start, end)["n"].to_pylist() == list(range(start, end))


def test_rows_that_are_not_there_are_refused(path: Path, tmp_path: Path) -> None:
    with pytest.raises(InputRefused, match="other rows"):
        rows_of(path, 0, ROWS + 1)
    (tmp_path / "y.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputRefused, match="cannot be read"):
        rows_of(tmp_path / "y.parquet", 0, 1)
