"""What the lease of a driver does where the daemon is lost; what calls do stands in scenarios."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from dss_client.job_values import Granted
from dss_client.jobs import Lease
from dss_core.errors import DssError, JobFenced, OutcomeUnknown, StagedFileRefused
from support.looked_at_job import JOB


@pytest.fixture
async def lease(monkeypatch: pytest.MonkeyPatch) -> Lease:
    monkeypatch.setattr("dss_client.jobs.AWAY_REST_S", 0)
    never_called: Any = None
    return Lease(never_called, Granted(JOB, 1_000, Path(), None))


def failing(errors: list[DssError]) -> Callable[[], Awaitable[str]]:
    """An act that raises these, one at each try, and then answers."""

    async def act() -> str:
        if errors:
            raise errors.pop(0)
        return "done"

    return act


async def test_what_may_be_repeated_is_repeated_until_the_daemon_answers(lease: Lease) -> None:
    losses: list[DssError] = [OutcomeUnknown() for _ in range(3)]
    assert await lease.over_restarts(failing(losses)) == "done"
    assert losses == []


async def test_what_the_daemon_refuses_is_not_repeated(lease: Lease) -> None:
    refused = StagedFileRefused(job="again", file="1.staged", reason="it is short")
    errors: list[DssError] = [refused, OutcomeUnknown()]
    with pytest.raises(StagedFileRefused):
        await lease.over_restarts(failing(errors))
    assert len(errors) == 1


async def test_a_driver_without_its_lease_repeats_nothing_and_is_told_why(lease: Lease) -> None:
    """Another driver may work on the same chunk."""
    lease.lost = JobFenced(job="again", epoch=1, newest=2)
    losses: list[DssError] = [OutcomeUnknown(), OutcomeUnknown()]
    with pytest.raises(JobFenced):
        await lease.over_restarts(failing(losses))
    assert len(losses) == 1


async def test_a_daemon_that_is_lost_by_the_same_act_again_and_again_is_given_up(
    lease: Lease, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dss_client._patience.AWAY_S", 0)
    losses: list[DssError] = [OutcomeUnknown(), OutcomeUnknown()]
    with pytest.raises(OutcomeUnknown):
        await lease.over_restarts(failing(losses))
    assert len(losses) == 1
