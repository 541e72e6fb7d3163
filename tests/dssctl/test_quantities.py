from datetime import timedelta

import pytest
import typer

from dss_core.errors import IllegalSpan, IllegalTime
from dssctl.quantities import distance, moment_ms, size_bytes, spans_ms


@pytest.mark.parametrize(
    ("text", "size"), [("4096B", 4096), ("512M", 512 << 20), ("10G", 10 << 30), ("500k", 500 << 10)]
)
def test_a_size_has_a_unit(text: str, size: int) -> None:
    assert size_bytes(text) == size


@pytest.mark.parametrize("text", ["", "7", "7X", "-7G", "1.5G", "7GB"])
def test_a_size_without_a_unit_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        size_bytes(text)


def test_of_a_bare_number_it_is_said_that_bytes_are_meant() -> None:
    with pytest.raises(typer.BadParameter, match="bytes are meant, not records; write 3000B"):
        size_bytes("3000")


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("100", 100),
        ("+100", 100),
        ("-100", -100),
        ("0", 0),
        ("15m", timedelta(minutes=15)),
        ("-1h30m", timedelta(hours=-1, minutes=-30)),
    ],
)
def test_a_distance_is_of_records_or_of_time_and_has_a_sign(
    text: str, meant: int | timedelta
) -> None:
    assert distance(text) == meant


@pytest.mark.parametrize(
    "text", ["", "-", "+-5", "--5", "5x", "1.5", "1" * 19, "\u0665", "99999999999d"]
)
def test_what_is_neither_records_nor_time_is_no_distance(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        distance(text)


def test_a_moment_may_be_ahead_but_no_marker() -> None:
    assert moment_ms("+30m", now_us=1_795_000_000_000_999) == 1_795_001_800_000
    for marker in ("now", "earliest"):
        with pytest.raises(typer.BadParameter):
            moment_ms(marker, now_us=0)
    with pytest.raises(IllegalTime):
        moment_ms("30m", now_us=0)


def test_spans_stand_side_by_side_and_each_has_a_unit() -> None:
    assert spans_ms("1s, 5s,2m") == (1_000, 5_000, 120_000)
    for wrong in ("", "1s,", "5"):
        with pytest.raises(IllegalSpan):
            spans_ms(wrong)
