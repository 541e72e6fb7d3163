"""What is imported when: administration must not wait for Arrow."""

import subprocess
import sys

import pytest

LIGHT = (
    "import sys; from dss_core import build, decode, errors, filters, frame, ids, progress;"
    " from dss_core import routing, times; columns = build.Columns([b'p'] * 31, [b'k'] * 31, 's');"
    " parts = build.partition_columns(columns, routing.Router.BLOCK, 4, 1, keyless_start=0);"
    " whole = build.build_frame(columns, partition=0, producer_id=bytes(16), sequence=0);"
    " assert decode.decode(whole).payloads == [b'p'] * 31;"
    " frame.verify(whole); assert [c.records for p in parts.values()"
    " for c in build.split_columns(p)] == [31];"
)


def imported(code: str) -> set[str]:
    program = f"{code} print(*{{name.split('.')[0] for name in sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_frames_below_32_records_live_without_arrow() -> None:
    assert "pyarrow" not in imported(LIGHT)


@pytest.mark.parametrize("module", ["grpc", "asyncio", "sqlite3"])
def test_the_shared_core_stays_pure(module: str) -> None:
    assert module not in imported(LIGHT)
