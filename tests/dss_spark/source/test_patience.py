import pyarrow as pa
import pytest

from dss_client.job_values import SourceRange
from dss_core.errors import OffsetOutOfRange, Unreachable
from dss_spark.source import patience
from dss_spark.source.patience import Tables, all_tables
from dss_spark.source.slices import Slice


def part(stream: str, start: int, end: int) -> SourceRange:
    return SourceRange(stream, 1, 0, start, end)


def tables(left: Slice, *, size: int) -> list[tuple[str, pa.Table]]:
    """All of a slice, some records a table."""
    return [
        (each.stream, pa.table({"offset": range(at, min(at + size, each.end))}))
        for each in left
        for at in range(each.start, each.end, size)
    ]


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "AGAIN_S", 0)


@pytest.mark.parametrize("survives", [0, 1, 2, 3])
async def test_a_reading_goes_on_behind_what_it_gave(survives: int) -> None:
    tries = 0

    async def read(left: Slice) -> Tables:
        nonlocal tries
        tries += 1
        for number, each in enumerate(tables(left, size=2)):
            if tries < 4 and number == survives:
                raise Unreachable(endpoint="unix:/s", reason="gone")
            yield each

    slice_ = (part("a", 3, 8), part("b", 0, 1), part("a", 20, 23))
    found = [
        (stream, offset)
        async for stream, table in all_tables(slice_, read)
        for offset in table["offset"].to_pylist()
    ]
    assert found == [("a", at) for at in range(3, 8)] + [("b", 0)] + [
        ("a", at) for at in range(20, 23)
    ]


async def test_what_passes_not_by_itself_is_raised_at_once() -> None:
    async def read(left: Slice) -> Tables:
        yield tables(left, size=9)[0]
        raise OffsetOutOfRange(offset=1, start=2, end=3, stream="a")

    reading = all_tables((part("a", 0, 3),), read)
    await anext(reading)
    with pytest.raises(OffsetOutOfRange):
        await anext(reading)


async def test_a_daemon_that_stays_away_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "AWAY_S", 0)

    async def read(left: Slice) -> Tables:
        raise Unreachable(endpoint="unix:/s", reason="gone")
        yield

    with pytest.raises(Unreachable):
        await anext(all_tables((part("a", 0, 3),), read))
