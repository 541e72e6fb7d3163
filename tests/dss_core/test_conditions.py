"""The grammar of filters and orders."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dss_core.conditions import FieldType, Own, conditions_of, order_of
from dss_core.errors import FilterUnreadable, OrderUnreadable

NOW_US = 1_795_000_000_000_000
S = 1_000_000

TYPES = {
    "name": FieldType.TEXT,
    "lag": FieldType.NUMBER,
    "wait_ms": FieldType.SPAN,
    "at": FieldType.MOMENT,
    "sealed": FieldType.TRUTH,
    "tags": FieldType.TEXTS,
}
ITEMS: dict[str, Mapping[str, Own]] = {
    "old": {"name": "old", "lag": 7, "wait_ms": 500, "at": NOW_US - 3_600 * S, "sealed": True},
    "new": {"name": "new", "lag": 9, "wait_ms": 90_000, "at": NOW_US - S, "tags": ("a", "b")},
    "bare": {"name": "bare"},
}


def chosen(text: str) -> list[str]:
    conditions = conditions_of(text, TYPES, now_us=NOW_US)
    return [name for name, item in ITEMS.items() if conditions.hold(item.get, NOW_US)]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", ["old", "new", "bare"]),
        ("lag>7", ["new"]),
        ("lag>=7 , wait_ms<1s", ["old"]),
        ("lag>=7 and wait_ms<1s", ["old"]),
        ("lag=7 or lag=9", ["old", "new"]),
        ("lag=7,name=n* or name=b*", ["bare"]),
        ("lag!=7", ["new", "bare"]),
        ("lag=", ["bare"]),
        ("lag!=", ["old", "new"]),
        ("at>5m", ["old"]),
        ("at<5m", ["new"]),
        ("at>-5m", ["new"]),
        ("at<2026-11-18T23:00:00Z", ["old", "new"]),
        ("at>2026-11-19", []),
        ("sealed=yes", ["old"]),
        ("sealed!=yes", ["new", "bare"]),
        ("tags=a", ["new"]),
        ("tags!=a", ["old", "bare"]),
        ("tags=", ["old", "bare"]),
        ("name=*e*", ["new", "bare"]),
    ],
)
def test_what_a_filter_lets_through(text: str, names: list[str]) -> None:
    assert chosen(text) == names


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("lag", "'lag' is no condition"),
        ("lag>1000,", "'' is no condition"),
        ("lag>1 or ", "The filter 'lag>1 or ' cannot be read"),
        ("lag>", "lag wants a number, not ''"),
        ("lag>many", "lag wants a number"),
        ("lag>-1", "lag wants a number"),
        ("lag>" + "9" * 400, "lag wants a number"),
        ("wait_ms>5", "wait_ms wants a span like 5m"),
        ("at>5", "at wants an age like 5m or a time"),
        ("at>now", "at wants an age like 5m or a time"),
        ("sealed=perhaps", "sealed wants yes or no"),
        ("sealed>yes", "sealed is a truth"),
        ("name>b", "name is a text"),
        ("colour=red", "there is no field colour"),
        ("__class__=x", "'__class__=x' is no condition"),
    ],
)
def test_a_filter_that_breaks_the_grammar_is_refused_with_what_is_wrong(
    text: str, problem: str
) -> None:
    with pytest.raises(FilterUnreadable) as refused:
        chosen(text)
    assert problem in refused.value.message
    assert "lag" in refused.value.hint_text


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("lag", ["new", "old", "bare"]),
        ("-lag", ["old", "new", "bare"]),
        ("lag:asc", ["old", "new", "bare"]),
        ("lag:desc", ["new", "old", "bare"]),
        ("at", ["old", "new", "bare"]),
        ("-at", ["new", "old", "bare"]),
        ("at:desc", ["new", "old", "bare"]),
        ("name", ["bare", "new", "old"]),
        ("name:desc", ["old", "new", "bare"]),
        ("tags", ["new", "old", "bare"]),
    ],
)
def test_the_greatest_number_the_oldest_moment_and_the_first_text_come_first(
    text: str, names: list[str]
) -> None:
    order = order_of(text, TYPES)
    assert order.sorted(ITEMS, lambda name, field: ITEMS[name].get(field)) == names


@pytest.mark.parametrize("text", ["", "colour", "lag:up", "-lag:asc", "lag:"])
def test_an_order_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(OrderUnreadable, match="cannot be sorted") as refused:
        order_of(text, TYPES)
    assert all(name in refused.value.hint_text for name in TYPES)


@given(st.text())
def test_whatever_is_written_gives_a_choice_or_a_named_error(text: str) -> None:
    try:
        found = chosen(text)
    except FilterUnreadable:
        return
    assert set(found) <= set(ITEMS)
