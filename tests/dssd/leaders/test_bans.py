"""How long a ban lasts, by clocks that jump."""

import pytest

from dssd.leaders.bans import ban_of
from dssd.leaders.limits import BAN_MS_MAX
from dssd.store.rows import BanRow

DAY_MS = 24 * 3_600_000


class Restarted:
    """The clocks of a daemon that starts a minute after the ban, its wall clock a day behind."""

    def now_ms(self) -> int:
        return 500

    def wall_ms(self) -> int:
        return 60_000 - DAY_MS


@pytest.mark.parametrize(("asked_ms", "left_ms"), [(600_000, 600_000), (None, DAY_MS + 540_000)])
def test_a_ban_lasts_no_longer_than_was_asked_for_though_the_clock_was_set_back(
    asked_ms: int | None, left_ms: int
) -> None:
    assert left_ms < BAN_MS_MAX
    ban = ban_of(BanRow(1, "ann", 600_000, 7, asked_ms), Restarted())
    assert ban.ends_ms == 500 + left_ms
