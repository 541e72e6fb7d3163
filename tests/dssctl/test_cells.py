"""What cells of groups and their streams show."""

import pytest

from dssctl.cells import rate
from dssctl.output import Instant, Item


@pytest.mark.parametrize(("age_s", "shown"), [(1, "-"), (5.9, "-"), (6.1, "0.0"), (60, "0.0")])
def test_a_rate_says_nothing_until_the_daemon_has_looked_at_the_group(
    age_s: float, shown: str
) -> None:
    now_us = 1_700_000_000_000_000
    item: Item = {"acks_1m": 0.0, "created_at": Instant(now_us - int(age_s * 1_000_000))}
    assert rate("acks_1m")(item, now_us) == shown


def test_a_stream_has_no_age_and_its_rate_is_shown() -> None:
    assert rate("acks_1m")({"acks_1m": 12.4}, 0) == "12"
