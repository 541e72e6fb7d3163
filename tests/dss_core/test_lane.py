"""Entries of queues: how large they get, and that a frame has room for each."""

import pytest

from dss_api.lane_entries import entry_bytes
from dss_core.build import build_frame
from dss_core.columns import Columns
from dss_core.decode import decode
from dss_core.errors import HeaderReserved, IllegalArgument, IllegalName, RecordTooLarge
from dss_core.frame import stamped, verify
from dss_core.frames_together import examine_together
from dss_core.ids import StreamName
from dss_core.lane import (
    ENTRIES,
    ENTRY_BYTES_MAX,
    ENTRY_HEADERS,
    ERROR_HEADER,
    ERROR_TEXT_BYTES_MAX,
    LANE_HEADER,
    LaneEntry,
    cut_text,
    internal_name,
    is_internal,
    is_reserved,
)
from dss_core.limits import (
    HEADER_BYTES_MAX,
    HEADERS_MAX,
    NAME_BYTES_MAX,
    RECORD_BYTES_MAX,
    RECORDS,
    RecordLimits,
)
from dss_core.rows_layout import Headers

U32, I64, U64 = (1 << 32) - 1, (1 << 63) - 1, (1 << 64) - 1

LARGEST = LaneEntry(
    source_level=U32,
    source_offset=U64,
    origin_ordinal=U32,
    origin_partition=U32,
    origin_offset=U64,
    origin_time_us=I64,
    attempt=U32,
    redrives=U32,
    operation=U64,
    due_ms=I64,
    first_failure_ms=I64,
    cause="redriven",
    error_type="E" * ERROR_TEXT_BYTES_MAX,
    fingerprint=U64,
    client_id="c" * NAME_BYTES_MAX,
    grant_epoch=U64,
    cursor_generation=U64,
)
ADDED: Headers = (
    (LANE_HEADER, entry_bytes(LARGEST)),
    (ERROR_HEADER, cut_text("é" * ERROR_TEXT_BYTES_MAX).encode()),
)


def headers_of(count: int, size_bytes: int) -> Headers:
    """So many headers of so many bytes together."""
    rest = size_bytes - (count - 1)
    return (*((("h", b""),) * (count - 1)), ("h", bytes(rest - 1)))


def frame_of(payloads: list[bytes], headers: Headers, limits: RecordLimits = ENTRIES) -> bytes:
    columns = Columns(payloads, None, "orders", [headers] * len(payloads), 5)
    return build_frame(columns, partition=0, producer_id=bytes(16), sequence=0, limits=limits)


def test_the_largest_headers_of_an_entry_are_within_what_is_allowed() -> None:
    assert sum(len(name) + len(value) for name, value in ADDED) <= ENTRY_BYTES_MAX
    assert len(ADDED) == ENTRY_HEADERS


@pytest.mark.parametrize("records", [1, 3, 40])
def test_records_with_all_headers_that_they_may_have_fit_into_a_queue(records: int) -> None:
    own = headers_of(HEADERS_MAX, HEADER_BYTES_MAX)
    frame = frame_of([b"x"] * records, own + ADDED)
    assert decoded_headers(frame) == [own + ADDED] * records


@pytest.mark.parametrize("others", [0, 39])
def test_a_record_of_the_largest_size_fits_into_a_queue(others: int) -> None:
    payloads = [bytes(RECORD_BYTES_MAX), *([b"x"] * others)]
    frame = frame_of(payloads, ADDED)
    assert decoded_headers(frame) == [ADDED] * (others + 1)


@pytest.mark.parametrize("others", [0, 39])
def test_only_entries_may_be_larger(others: int) -> None:
    large = [bytes(RECORD_BYTES_MAX), *([b"x"] * others)]
    added = tuple((name.upper(), value) for name, value in ADDED)
    with pytest.raises(RecordTooLarge):
        frame_of(large, added, limits=RECORDS)
    with pytest.raises(RecordTooLarge):
        frame_of([bytes(RECORD_BYTES_MAX + ENTRY_BYTES_MAX), *large[1:]], ADDED)
    small = [b"x"] * (others + 1)
    for own in (headers_of(HEADERS_MAX, 100), headers_of(1, HEADER_BYTES_MAX)):
        with pytest.raises(IllegalArgument):
            frame_of(small, own + added, limits=RECORDS)


def decoded_headers(frame: bytes) -> list[Headers]:
    stamp = stamped(frame, base_offset=0, append_time_us=1, topic_epoch=1, storage_topic_id=1)
    return decode(stamp + frame[len(stamp) :]).headers


def test_names_of_internal_topics_are_none_that_a_user_can_give() -> None:
    for level in (1, 2):
        name = internal_name(level, 5, 3)
        assert is_internal(name)
        assert StreamName.parse(f"{name}/0/7") == StreamName(name, 0, 7)
    assert len({internal_name(1, 5, 3), internal_name(2, 5, 3), internal_name(1, 53, 3)}) == 3
    for name in ("orders", "~", "~retry", "~retry.5", "~retry.5.x", "retry.5.3", "~retry.5.3\n"):
        assert not is_internal(name)
    with pytest.raises(IllegalName):
        StreamName.parse("~orders/0/0")


@pytest.mark.parametrize("name", ["dss-lane", "dss-due", "dss-error", "dss-mqtt-", "dss-mqtt-qos"])
def test_the_daemons_own_headers_are_reserved(name: str) -> None:
    assert is_reserved(name)


@pytest.mark.parametrize("records", [1, 31, 32, 100])
def test_a_frame_of_a_producer_with_such_a_header_is_neither_built_nor_passed(records: int) -> None:
    rows: list[Headers | None] = [None] * records
    rows[-1] = (("fine", b"1"), ("dss-mqtt-qos", b"2"))
    columns = Columns([b"x"] * records, None, "orders", rows, 5)
    with pytest.raises(HeaderReserved, match="dss-mqtt-qos"):
        build_frame(columns, partition=0, producer_id=bytes(16), sequence=0)
    frame = build_frame(columns, partition=0, producer_id=bytes(16), sequence=0, limits=ENTRIES)
    with pytest.raises(HeaderReserved, match="dss-mqtt-qos"):
        verify(frame)
    with pytest.raises(HeaderReserved, match="dss-mqtt-qos"):
        examine_together([frame, frame])


@pytest.mark.parametrize("records", [1, 100])
def test_a_frame_that_only_holds_their_bytes_passes(records: int) -> None:
    headers: Headers = (
        ("a", b"dss-lane"),
        ("no-dss-lane", b""),
        ("dss-lane-", b""),
        ("dss-hop", b"1"),
    )
    columns = Columns([b"dss-lane"] * records, None, "dss-lane", [headers] * records, 5)
    frame = build_frame(columns, partition=0, producer_id=bytes(16), sequence=0)
    assert verify(frame).records == records
    assert len(examine_together([frame, frame])) == 2


@pytest.mark.parametrize("name", ["dss-origin", "dss-hop", "dss-mqtt", "DSS-lane", "lane", ""])
def test_other_headers_are_not(name: str) -> None:
    assert not is_reserved(name)
