"""Which groups a list shows, and in which order."""

from dataclasses import replace

import pytest

from dss_core.errors import DssError, FilterUnreadable, OrderUnreadable
from dssd.machines.fate import Counts
from dssd.questions.overviews import Overview
from dssd.questions.rates import NO_RATES, Rates
from dssd.questions.selection import TYPES, GroupSelection
from dssd.store.rows import GroupRow

NOW_US = 1_000_000_000


def overview(name: str = "g", *, lag: int = 0, **more: object) -> Overview:
    group = GroupRow(
        group_id=1,
        name=name,
        filter="orders/#",
        kind="shared",
        start="now",
        session_id=None,
        ack_wait_ms=30_000,
        created_at_ms=0,
        cursor_generation=0,
    )
    made = Overview(
        group, "active", "", 1, 2, 0, 4, lag, True, None, Counts(), NO_RATES, NO_RATES, None
    )
    return replace(made, **{"seen_us": NOW_US, **more})  # type: ignore[arg-type] # of Overview


def chosen(text: str, *overviews: Overview) -> list[str]:
    return sorted(each.group.name for each in GroupSelection(text, "", NOW_US).of(overviews))


def test_without_a_filter_every_group_is_chosen() -> None:
    assert chosen("  ", overview("a"), overview("b")) == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("lag>1000", ["far"]),
        ("lag>1000 or acks=2.5", ["far", "near"]),
        ("borrowers=2 and lag=0", ["none"]),
        ("lag >= 1000 , state = active", ["far", "near"]),
        ("lag<1000,name=*o*", ["none"]),
        ("name!=f*", ["near", "none"]),
        ("oldest>1m", ["far"]),
        ("oldest<=1m30s,lag!=0", ["near"]),
        ("acks>=2.5", ["near"]),
        ("drains<1h", ["near", "none"]),
        ("drains>1h", ["far"]),
        ("members=2,kind=shared,protocol=borrow,filter=orders/*", ["far", "near", "none"]),
    ],
)
def test_all_conditions_of_a_filter_hold(text: str, names: list[str]) -> None:
    far = overview("far", lag=5_000, oldest_unacked_us=NOW_US - 600_000_000)
    near = overview("near", lag=1_000, oldest_unacked_us=NOW_US - 60_000_000, acks=Rates(2.5, 1.0))
    assert chosen(text, far, near, overview("none")) == names


def test_a_start_is_compared_as_it_is_shown() -> None:
    made = overview("dated")
    dated = replace(made, group=replace(made.group, start="@0"))
    assert chosen("start=1970-*", dated, overview("now")) == ["dated"]


def test_the_greatest_number_comes_first_and_equal_ones_by_name() -> None:
    groups = [overview("c", lag=1), overview("b", lag=9), overview("a", lag=1)]

    def names(sort: str) -> list[str]:
        return [each.group.name for each in GroupSelection("", sort, NOW_US).of(groups)]

    assert names("") == names("name") == ["a", "b", "c"]
    assert names("-name") == ["c", "b", "a"]
    assert names("lag") == ["b", "a", "c"]
    assert names("-lag") == ["a", "c", "b"]


@pytest.mark.parametrize(
    ("wanted", "sort", "refusal"),
    [("", "colour", OrderUnreadable), ("colour=red", "", FilterUnreadable)],
)
def test_a_field_that_is_not_there_is_refused_with_those_that_are(
    wanted: str, sort: str, refusal: type[DssError]
) -> None:
    with pytest.raises(refusal) as refused:
        GroupSelection(wanted, sort, NOW_US)
    assert all(field in refused.value.hint_text for field in TYPES)


def test_what_no_list_shows_is_no_field() -> None:
    assert not {"failing", "stuck", "error", "cursor_generation", "session_id"} & set(TYPES)


def test_a_group_that_does_not_catch_up_drains_never() -> None:
    assert overview(lag=0).drain_ms == 0
    assert overview(lag=600, acks=Rates(30, 0), arrivals=Rates(20, 0)).drain_ms == 60_000
    assert overview(lag=600, acks=Rates(20, 0), arrivals=Rates(20, 0)).drain_ms is None


def test_a_lag_with_a_record_that_fails_again_and_again_is_not_forecast() -> None:
    failing = overview(lag=600, failing=True, acks=Rates(30, 0), arrivals=Rates(20, 0))
    assert failing.drain_ms is None
    assert replace(failing, lag=0).drain_ms == 0


def test_a_lag_that_is_in_flight_drains_neither_soon_nor_never() -> None:
    flying = overview(lag=1, oldest_unacked_us=NOW_US - 900_000)
    assert chosen("drains>1h", flying) == chosen("drains<1h", flying) == []
