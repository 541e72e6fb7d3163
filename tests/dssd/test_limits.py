"""Bounds of the daemon that only hold together with those of others."""

import pytest

from dss_client._doubt import SILENCE_OF_LEASE
from dss_core.limits import LEASE_MS
from dssd.limits import CLOSE_DRAIN_S, REVOKE_DEADLINE_MS, REVOKE_REPORT_SHARE, TAKEOVER_DRAIN_S
from dssd.operations.kinds.eviction import EVICTION_ANSWER_MS


@pytest.mark.parametrize(
    "answer_ms",
    [REVOKE_DEADLINE_MS, EVICTION_ANSWER_MS, TAKEOVER_DRAIN_S * 1_000, CLOSE_DRAIN_S * 1_000],
    ids=["revoke", "eviction", "takeover", "closing"],
)
def test_nobody_answers_for_a_client_that_may_still_hand_out(answer_ms: float) -> None:
    # It heard nothing since it was asked at the latest, and a tenth more is for clocks and loops.
    assert answer_ms * REVOKE_REPORT_SHARE > SILENCE_OF_LEASE * LEASE_MS * 1.1
