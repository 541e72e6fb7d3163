"""What a driver is told of a job by whoever made it."""

from collections.abc import Callable

import pytest

from dss_bulk.audits.params import AuditParams
from dss_bulk.backfill_work import BackfillParams
from dss_bulk.export_work import ExportParams
from dss_bulk.replay_params import ReplayParams
from dss_bulk.transform_params import TransformParams
from dss_core.errors import IllegalJob

READ = {
    "replay": ReplayParams.from_json,
    "export": ExportParams.from_json,
    "backfill": BackfillParams.from_json,
    "transform": TransformParams.from_json,
    "audit": lambda text: AuditParams.from_json("a", text),
}


@pytest.mark.parametrize("read", READ.values(), ids=READ)
@pytest.mark.parametrize(
    "text", ["{", "[]", "7", "[" * 10_000, '{"a": 1}', '{"files": "x", "shapes": [5], "ends": 1}']
)
def test_parameters_that_no_tool_writes_are_refused(
    read: Callable[[str], object], text: str
) -> None:
    with pytest.raises(IllegalJob):
        read(text)
