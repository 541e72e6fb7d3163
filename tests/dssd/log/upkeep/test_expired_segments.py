"""Which segments are too old or too many, without a log."""

import pytest

from dssd.log.upkeep.expired_segments import SegmentAge, expired

OLD = [SegmentAge(100, 1_000), SegmentAge(100, 2_000), SegmentAge(100, 3_000)]


@pytest.mark.parametrize(
    ("retention_ms", "retention_bytes", "count"),
    [
        (None, None, 0),
        (10, None, 0),
        (9, None, 0),
        (8, None, 1),
        (0, None, 3),
        (None, 300, 0),
        (None, 200, 1),
        (None, 199, 1),
        (None, 100, 2),
        (None, 0, 3),
        (8, 100, 2),
    ],
)
def test_the_oldest_segments_go_first(
    retention_ms: int | None, retention_bytes: int | None, count: int
) -> None:
    found = expired(OLD, retention_ms=retention_ms, retention_bytes=retention_bytes, now_us=10_000)
    assert found == count


def test_a_young_segment_protects_what_comes_after_it() -> None:
    ages = [SegmentAge(1, 9_000), SegmentAge(1, 1_000)]
    assert expired(ages, retention_ms=5, retention_bytes=None, now_us=10_000) == 0


def test_a_segment_without_frames_has_no_age() -> None:
    assert expired([SegmentAge(1, 0)], retention_ms=5, retention_bytes=None, now_us=10_000) == 0
