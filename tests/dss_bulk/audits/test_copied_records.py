import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dss_bulk.audits import copied_records
from dss_bulk.audits.copied_records import origins_of
from dss_bulk.audits.origins import PAGE_OFFSETS
from support.bulk_tables import table_of


def copies(*origins: str) -> copied_records.Copies:
    headers = [(("dss-origin", each.encode(errors="surrogateescape")),) for each in origins]
    return origins_of(table_of(subjects=["o"] * len(origins), headers=headers), "o/0/0")


def test_an_origin_that_comes_twice_is_counted_and_named() -> None:
    seen = copies("s/0/0@1", "s/0/0@70000", "s/0/0@1", "s/0/0@1", "s/0/1@1").origins
    assert (seen.doubles, seen.doubled, seen.records) == (2, (("s/0/0", 1),), 3)
    assert sorted(seen.pages) == [("s/0/0", 0), ("s/0/0", 1), ("s/0/1", 0)]
    assert seen.pages["s/0/0", 1] == 1 << (70_000 - PAGE_OFFSETS)


MADE_UP = (
    "s\udcff@1",
    "@1",
    "s/0/0",
    "s/0/0@",
    "s/0/0@-1",
    "s/0/0@1\n",
    "s/0/0@\N{FULLWIDTH DIGIT ONE}",
    "s 0@1",
    "s@1@2",
    "s@9999999999999999999",
    "s@99999999999999999999",
    "x" * 513,
    "x" * 513 + "@1",
    "",
)


@pytest.mark.parametrize("made_up", MADE_UP)
def test_a_header_that_was_made_up_is_no_origin(made_up: str) -> None:
    assert copies(made_up).origins.records == 0
    found = copies("s/0/0@7", made_up, "s/0/0@8")
    assert found.origins.records == 2
    assert found.orders == {("o/0/0", "s/0/0"): (7, 8)}


def test_the_first_of_two_origins_counts() -> None:
    headers = [(("dss-origin", b"s/0/0@4"), ("dss-origin", b"s/0/0@9"))]
    found = origins_of(table_of(subjects=["o"], headers=headers), "o/0/0")
    assert found.orders == {("o/0/0", "s/0/0"): (4, 4)}


def test_origins_far_from_each_other_do_not_fill_the_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(copied_records, "AUDIT_CHUNK_PAGES_MAX", 2)
    seen = copies(*(f"s/0/0@{each * PAGE_OFFSETS}" for each in range(5))).origins
    assert (len(seen.pages), seen.unexamined) == (2, 3)


def test_sources_without_number_are_counted_as_unexamined_and_their_order_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(copied_records, "AUDIT_CHUNK_SOURCES_MAX", 2)
    found = copies("a@1", "b@1", "c@5", "c@4")
    assert (found.origins.records, found.origins.unexamined) == (2, 2)
    assert found.falling is not None
    assert found.falling.to_pylist() == [False, False, False, True]


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(st.sampled_from(["s/0/0", "s/0/1"]), st.integers(0, 3 * PAGE_OFFSETS)),
        min_size=1,
        max_size=40,
    )
)
def test_the_origins_that_were_seen_are_those_of_the_headers(all_: list[tuple[str, int]]) -> None:
    seen = copies(*(f"{stream}@{offset}" for stream, offset in all_)).origins
    for stream, offset in all_:
        assert seen.pages[stream, offset // PAGE_OFFSETS] >> (offset % PAGE_OFFSETS) & 1
    assert seen.records == len(set(all_))
    assert seen.doubles == len(all_) - len(set(all_))
