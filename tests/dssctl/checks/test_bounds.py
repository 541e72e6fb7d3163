"""Bounds of checks: their units, and what is beyond them."""

import pytest
import typer

from dss_core.errors import IllegalSpan
from dssctl.checks.bounds import (
    AGE,
    FREE_BYTES,
    FREE_SHARE,
    MEMBERS,
    RECORDS,
    Status,
    Unit,
    bounds_of,
)


@pytest.mark.parametrize(
    ("unit", "warn", "crit", "value", "status"),
    [
        (RECORDS, "1k", "50k", 999, Status.OK),
        (RECORDS, "1k", "50k", 1_000, Status.WARNING),
        (RECORDS, "1k", "50k", 50_000, Status.CRITICAL),
        (RECORDS, None, "2M", 1_999_999, Status.OK),
        (MEMBERS, "3", "1", 2, Status.WARNING),
        (MEMBERS, "3", "1", 0, Status.CRITICAL),
        (AGE, "5m", "1h", 300_000, Status.WARNING),
        (FREE_SHARE, "10%", "3%", 0.05, Status.WARNING),
        (FREE_BYTES, "20G", "5G", 4 << 30, Status.CRITICAL),
    ],
)
def test_a_value_is_judged_by_the_worst_bound_that_it_breaks(
    unit: Unit, warn: str | None, crit: str | None, value: float, status: Status
) -> None:
    assert bounds_of(unit, warn, crit).status(value) is status


@pytest.mark.parametrize(
    ("unit", "warn", "crit"),
    [
        (RECORDS, "5m", None),
        (RECORDS, "-1", None),
        (RECORDS, "50k", "1k"),
        (MEMBERS, "1", "3"),
        (FREE_SHARE, "100%", None),
        (FREE_BYTES, "10", None),
    ],
)
def test_a_bound_of_another_unit_or_in_the_wrong_order_is_refused(
    unit: Unit, warn: str | None, crit: str | None
) -> None:
    with pytest.raises(typer.BadParameter):
        bounds_of(unit, warn, crit)


def test_a_bare_number_is_no_age() -> None:
    with pytest.raises(IllegalSpan):
        bounds_of(AGE, "30", None)
