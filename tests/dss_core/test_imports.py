"""What is imported when: administration must not wait for Arrow."""

import subprocess
import sys

import pytest

from dss_core.build import build_frame
from dss_core.columns import Columns

LIGHT = (
    "import sys; from dss_core import build, decode, errors, filters, frame, ids, progress;"
    " from dss_core import routing, times; columns = build.Columns([b'p'] * 31, [b'k'] * 31, 's');"
    " parts = build.partition_columns(columns, routing.Router.BLOCK, 4, 1, keyless_start=0);"
    " whole = build.build_frame(columns, partition=0, producer_id=bytes(16), sequence=0);"
    " assert decode.decode(whole).payloads == [b'p'] * 31;"
    " frame.verify(whole); assert [c.records for p in parts.values()"
    " for c in build.split_columns(p)] == [31];"
)
READER = (
    "import sys; from dss_core import decode, frame; whole = sys.stdin.buffer.read();"
    " frame.verify(whole); assert decode.decode(whole).payloads == [b'p'] * 32;"
)


def imported(code: str, given: bytes = b"") -> set[str]:
    program = f"{code} print(*{{name.split('.')[0] for name in sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-c", program], input=given, capture_output=True, check=True
    )
    return set(done.stdout.decode().split())


@pytest.fixture(scope="module")
def light() -> set[str]:
    return imported(LIGHT)


def test_frames_below_32_records_live_without_arrow(light: set[str]) -> None:
    assert "pyarrow" not in light


@pytest.mark.parametrize("module", ["grpc", "asyncio", "sqlite3"])
def test_the_shared_core_stays_pure(module: str, light: set[str]) -> None:
    assert module not in light


def test_who_only_reads_does_not_load_pandas() -> None:
    columns = Columns([b"p"] * 32, [b"k"] * 32, "s")
    whole = build_frame(columns, partition=0, producer_id=bytes(16), sequence=0)
    loaded = imported(READER, whole)
    assert "pyarrow" in loaded
    assert "pandas" not in loaded
