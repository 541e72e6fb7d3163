from dssctl.output.instants import Instant


def test_a_moment_is_rfc_3339_in_utc() -> None:
    assert Instant(1_795_000_000_000_000).rfc3339() == "2026-11-18T11:06:40Z"
    assert Instant(1_795_000_000_250_000).rfc3339() == "2026-11-18T11:06:40.250000Z"


def test_a_moment_beyond_the_calendar_is_still_shown() -> None:
    assert Instant(1 << 62).rfc3339().startswith("@4611686018427.38")


def test_a_moment_to_come_within_a_minute_is_now() -> None:
    assert Instant(2_000_000).age(now_us=1_000_000) == "0s"


def test_a_moment_to_come_later_says_in_what_time() -> None:
    assert Instant(90 * 86_400_000_000).age(now_us=0) == "in 90d"
