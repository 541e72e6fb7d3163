"""What becomes of each row of a file, on the local engine; test_rows_source is for Spark."""

from pathlib import Path

import pyarrow as pa
import pytest

from dss_bulk.backfill_work import looked_through
from dss_bulk.inputs import Inputs
from dss_bulk.rows import records_of
from dss_core.errors import InputRefused
from support.backfill_cases import CASES, Case


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_row_is_one_record_or_one_reject(case: Case, tmp_path: Path) -> None:
    path = case.write(tmp_path)
    if case.refused:
        with pytest.raises(InputRefused) as refused:
            looked_through([path], case.rule)
        assert case.refused in refused.value.message
        return
    planned, look = looked_through([path], case.rule)
    inputs = Inputs(planned.files, case.rule)  # as its driver has it
    made = [records_of(rows, ["f"], case.rule, 5) for rows in inputs.batches(0, inputs.rows)]
    records = pa.concat_tables([each.records for each in made]) if made else None
    rejects = {reject.row: reject.reason for each in made for reject in each.rejects}
    found = (
        []
        if records is None
        else list(zip(records["key"].to_pylist(), records["payload"].to_pylist(), strict=True))
    )
    assert found == list(case.records)
    assert rejects.keys() == dict(case.rejects).keys()
    assert [reason for row, reason in rejects.items() if case.rejects[row] not in reason] == []
    assert (look.records, {each.row: each.reason for each in look.rejects}) == (len(found), rejects)
    if case.times_us:
        assert records is not None
        assert records["timestamp_us"].to_pylist() == list(case.times_us)
