from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pytest

from dss_core.filters import TopicFilter
from dss_spark.source.conditions import Bounds, Conditions, conditions_of
from support.prerequisites import need_spark

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
NOON_US = 1_795_348_800_000_000


def conditions(*filters: tuple[str, str, Any]) -> Conditions:
    need_spark()
    from pyspark.sql import datasource

    return conditions_of(
        getattr(datasource, kind)((column,), value) for kind, column, value in filters
    )


@pytest.mark.parametrize(
    ("filters", "known"),
    [
        ([("EqualTo", "stream", "a/0/1")], Conditions(streams=frozenset({"a/0/1"}))),
        (
            [("In", "stream", ("a/0/1", "a/0/2", None)), ("EqualTo", "stream", "a/0/2")],
            Conditions(streams=frozenset({"a/0/2"})),
        ),
        ([("In", "key", (b"a", None))], Conditions(keys=frozenset({b"a"}))),
        ([("EqualNullSafe", "key", None)], Conditions()),
        ([("GreaterThan", "append_time", NOON)], Conditions(append_us=Bounds(NOON_US + 1, None))),
        (
            [("GreaterThanOrEqual", "append_time", NOON), ("LessThan", "append_time", NOON)],
            Conditions(append_us=Bounds(NOON_US, NOON_US)),
        ),
        (
            [("LessThanOrEqual", "offset", 7), ("In", "offset", (3, 5))],
            Conditions(offsets=Bounds(3, 6)),
        ),
        ([("StringStartsWith", "subject", "a/b/c")], Conditions(subject="a/b/#")),
        ([("EqualTo", "subject", "a/b")], Conditions(subject="a/b")),
        ([("EqualTo", "subject", "a/+/b")], Conditions()),
        ([("EqualTo", "subject", "a//#b")], Conditions()),
        ([("StringContains", "subject", "b"), ("GreaterThan", "time", NOON)], Conditions()),
    ],
)
def test_filters_say_what_need_not_be_read(
    filters: Iterable[tuple[str, str, Any]], known: Conditions
) -> None:
    assert conditions(*filters) == known


def test_what_is_negated_or_asks_for_null_is_left_to_spark() -> None:
    need_spark()
    from pyspark.sql.datasource import EqualTo, IsNotNull, IsNull, Not

    filters = [Not(EqualTo(("stream",), "a/0/1")), IsNull(("key",)), IsNotNull(("stream",))]
    assert conditions_of(filters) == Conditions()


def test_every_subject_with_a_prefix_is_met_by_its_filter() -> None:
    wanted = conditions(("StringStartsWith", "subject", "a/b"))
    assert wanted.subject is not None
    matching = TopicFilter.parse(wanted.subject)
    assert all(map(matching.matches, ("a/b", "a/bc", "a/b/c/d")))
