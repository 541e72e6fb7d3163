import pytest
import typer

from dssctl.quantities import size_bytes, span_ms


@pytest.mark.parametrize(
    ("text", "ms"), [("500ms", 500), ("30s", 30_000), ("1h30m", 5_400_000), ("7d", 604_800_000)]
)
def test_a_span_has_units(text: str, ms: int) -> None:
    assert span_ms(text) == ms


@pytest.mark.parametrize("text", ["", "7", "7x", "-7d", "7 d", "d", "1d2", "\u0667d"])
def test_a_span_without_units_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        span_ms(text)


@pytest.mark.parametrize(
    ("text", "size"), [("4096B", 4096), ("512M", 512 << 20), ("10G", 10 << 30)]
)
def test_a_size_has_a_unit(text: str, size: int) -> None:
    assert size_bytes(text) == size


@pytest.mark.parametrize("text", ["", "7", "7X", "-7G", "1.5G", "7GB"])
def test_a_size_without_a_unit_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        size_bytes(text)
