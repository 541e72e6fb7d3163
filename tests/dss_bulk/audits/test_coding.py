import pytest
from hypothesis import given

from dss_bulk.audits.coding import ALL_STREAMS, read, settled, text_of
from dss_bulk.audits.origins import Origins
from dss_bulk.audits.partial import Amount, Check, Found, Partial
from dss_bulk.audits.report import report_of
from dss_bulk.audits.top_keys import TopKeys

from .test_partial import PARTS

LARGE = Partial(
    streams={f"orders/0/{each}": Amount(each * 7919, each * 104_729) for each in range(500)},
    found={Check.GAPS: Found(3, ("orders/0/1 1..3",))},
    keys=TopKeys(
        {each * 2**57: each for each in range(60)},
        {each * 2**57: b"\x00%d" % each for each in range(60)},
        4,
    ),
    origins=Origins({("s/0/0", 0): 3**41_000}, 2, (("s/0/0", 4),), 1),
    orders={(f"orders/0/{each}", "s/0/0"): (each**3, each**4) for each in range(500)},
    apart=frozenset({("orders/0/1", "s/0/0")}),
)


@given(PARTS)
def test_a_partial_result_comes_back_from_its_text(partial: Partial) -> None:
    assert read(text_of(partial)) == partial


def test_a_large_one_comes_back() -> None:
    assert read(text_of(LARGE)) == LARGE


@pytest.mark.parametrize("bytes_max", [14_000, 6_000, 4_500, 1_000])
def test_what_does_not_fit_is_told_as_unexamined(bytes_max: int) -> None:
    text = text_of(LARGE, bytes_max)
    assert len(text) <= bytes_max
    left = read(text)
    assert (left.records, left.bytes) == (LARGE.records, LARGE.bytes)
    assert left.found[Check.GAPS].count == 3
    assert left.origins.doubles == 2
    partitions = {0: 500}
    said = report_of(left, partitions).found((Check.UNEXAMINED,))[0]
    assert "came twice" in " ".join(said.examples)
    if ALL_STREAMS in left.streams:
        assert report_of(left, partitions).streams == ()


def test_the_whole_remembers_no_origin_and_says_the_same() -> None:
    after = settled(LARGE)
    assert report_of(after, {0: 500}) == report_of(LARGE, {0: 500})
    assert len(text_of(after)) < len(text_of(LARGE)) / 2
