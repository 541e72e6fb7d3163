"""Grants to report: gathered from the first on."""

from dssd.machines.delivery.pending_reports import REPORT_INTERVAL_MS, PendingReports


def test_grants_are_reported_together_an_interval_after_the_first() -> None:
    moved = PendingReports()
    for now_ms, grant in enumerate((3, 1, 3)):
        moved.note(grant, now_ms)
    assert (moved.report_at_ms, moved.take()) == (REPORT_INTERVAL_MS, [1, 3])
    assert (moved.report_at_ms, moved.take()) == (None, [])


def test_a_grant_that_is_over_is_not_reported() -> None:
    moved = PendingReports()
    moved.note(1, 0)
    moved.discard(1)
    assert moved.take() == []


def test_what_a_client_waits_for_is_reported_now_with_what_was_gathered() -> None:
    moved = PendingReports()
    moved.note(3, 0)
    moved.hurry(1, 1)
    assert (moved.report_at_ms, moved.take()) == (1, [1, 3])
