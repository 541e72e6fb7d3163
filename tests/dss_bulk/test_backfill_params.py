import json
from pathlib import Path

import pytest

from dss_bulk.backfill_work import BACKFILL_PARAMS_BYTES_MAX, BackfillParams, as_they_are
from dss_bulk.inputs import InputFile
from dss_bulk.row_rule import RowRule
from dss_core.errors import IllegalJob


def params(files: int) -> BackfillParams:
    each = (
        InputFile(f"/srv/in/year=2013/part-{n:05}.csv", 7_919 * n, 10**18 + 104_729**3 * n, 31 * n)
        for n in range(files)
    )
    return BackfillParams(RowRule("t", "k", types=(("n", "int64"),)), tuple(each), "/srv/rejects")


@pytest.mark.parametrize("files", [0, 1, 1_200])
def test_params_with_their_files_survive_the_manifest_and_fit(files: int) -> None:
    made = params(files)
    made.require_room("in")
    assert BackfillParams.from_json(made.to_json()) == made
    assert len(made.to_json()) <= BACKFILL_PARAMS_BYTES_MAX
    assert isinstance(json.loads(made.to_json())["files"], list if files <= 1 else str)


def test_more_files_than_fit_are_refused_before_they_are_read(tmp_path: Path) -> None:
    with pytest.raises(IllegalJob, match=r"the list of its 9,000 files .* make several jobs"):
        params(9_000).require_room("in")
    path = tmp_path / "x.csv"
    path.write_bytes(b"k\na\n")
    [file] = as_they_are([path, tmp_path / "none"])
    assert (file.path, file.bytes) == (str(path), 4)
