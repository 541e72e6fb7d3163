"""A batch as a frame of pandas, and what is said where there is no pandas."""

import importlib.util
from datetime import UTC, datetime

import pytest

from dss_client.record import Batch
from dss_core.build import build_frame
from dss_core.columns import Columns
from dss_core.decode import decode
from dss_core.errors import LibraryMissing
from dss_core.frame import PRODUCER_ID_BYTES


class Piece:
    stream = "t/0/0"


def batch() -> Batch:
    times = [1_000_000, 2_000_000]
    columns = Columns(
        payloads=[b"a", b"b"],
        keys=[b"k", None],
        subjects="t/eu",
        headers=[(("h", b"1"),), ()],
        timestamps_us=times,
    )
    return Batch(
        Piece(),
        decode(build_frame(columns, partition=0, producer_id=bytes(PRODUCER_ID_BYTES), sequence=0)),
    )


def test_a_row_is_a_record_and_its_times_are_dates() -> None:
    frame = batch().to_pandas()
    assert list(frame.columns) == [
        *("offset", "subject", "key", "payload", "headers", "timestamp", "append_time")
    ]
    assert frame["payload"].tolist() == [b"a", b"b"]
    assert frame["key"].tolist() == [b"k", None]
    assert frame["timestamp"].iloc[1].to_pydatetime() == datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC)
    assert batch().to_arrow().num_rows == len(frame)


def test_without_pandas_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(LibraryMissing, match="pandas"):
        batch().to_pandas()
