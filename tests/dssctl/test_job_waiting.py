"""Waiting for a bulk job: what a watch tells of it, and what it tells no more."""

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dss_client import Job, WatchKey, WatchUpdate
from dss_core.errors import DriverEnded, JobNotFound
from dssctl import job_waiting
from dssctl.job_waiting import Waiting, taken_soon
from dssctl.settings import Settings
from dssctl.started_driver import StartedDriver
from support.looked_at_job import JOB


def told(*jobs: Job, anew: bool = False, gone: str = "", complete: bool = True) -> WatchUpdate:
    changed = tuple((WatchKey("jobs", "", each.name), each) for each in jobs)
    removed = (WatchKey("jobs", "", gone),) if gone else ()
    return WatchUpdate(anew, changed, removed, complete)


@pytest.fixture
def waiting() -> Waiting:
    """For a job that was told of once."""
    found = Waiting(Settings(), JOB)
    found.take(told(JOB, anew=True))
    return found


def test_each_change_of_the_job_is_taken_and_those_of_others_are_not(waiting: Waiting) -> None:
    waiting.take(told(replace(JOB, published=5), replace(JOB, job_id=9, name="other")))
    waiting.take(told(gone="third"))
    assert (waiting.job.published, waiting.job.job_id) == (5, JOB.job_id)


def test_a_job_that_is_removed_is_waited_for_no_longer(waiting: Waiting) -> None:
    with pytest.raises(JobNotFound):
        waiting.take(told(gone=JOB.name))


def test_a_job_that_got_the_name_of_a_removed_one_is_another_job(waiting: Waiting) -> None:
    waiting.take(told(anew=True, complete=False))
    with pytest.raises(JobNotFound):
        waiting.take(told(replace(JOB, job_id=9)))


def test_what_stands_still_is_said_once(
    waiting: Waiting, capsys: pytest.CaptureFixture[str]
) -> None:
    waiting.tell_what_stands_still()
    assert capsys.readouterr().err == "", "a driver works on it"
    for published in (3, 3):
        waiting.take(told(replace(JOB, published=published, driver_lives=False)))
        waiting.tell_what_stands_still()
    assert capsys.readouterr().err.count("nobody drives the job again") == 1
    waiting.take(told(replace(JOB, state="paused")))
    waiting.tell_what_stands_still()
    assert "dssctl jobs resume again" in capsys.readouterr().err


def looked_at(looks: Iterator[Job]) -> Any:  # noqa: ANN401 -- a part of a client
    async def get(name: str) -> Job:
        return next(looks)

    return cast("Any", SimpleNamespace(jobs=SimpleNamespace(get=get)))


async def test_a_driver_that_was_just_started_is_given_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(job_waiting, "DRIVER_LOOK_S", 0)
    nobody = replace(JOB, driver_lives=False)
    looks = iter([nobody, nobody, JOB, nobody])
    assert await taken_soon(looked_at(looks), JOB.name) == JOB
    ended = replace(nobody, state="done")
    assert await taken_soon(looked_at(iter([ended])), JOB.name) == ended
    monkeypatch.setattr(job_waiting, "DRIVER_LOOKS_MAX", 3)
    assert await taken_soon(looked_at(iter([nobody] * 4)), JOB.name) == nobody


async def test_a_job_whose_driver_has_ended_is_waited_for_no_longer() -> None:
    nobody = replace(JOB, driver_lives=False)
    driver: Any = SimpleNamespace(how_it_ended=lambda: "was killed by signal 9")
    with pytest.raises(DriverEnded, match="killed by signal 9"):
        await Waiting(Settings(), nobody, driver).is_left(looked_at(iter([nobody])))
    done = replace(nobody, state="done")
    assert await Waiting(Settings(), nobody, driver).is_left(looked_at(iter([done])))
    driver.how_it_ended = str
    assert not await Waiting(Settings(), nobody, driver).is_left(looked_at(iter([])))


def test_of_a_driver_it_is_known_how_it_ended() -> None:
    pid = os.posix_spawnp("sleep", ["sleep", "60"], os.environ)
    driver = StartedDriver(pid)
    assert driver.how_it_ended() == ""
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert driver.how_it_ended() == "was killed by signal 9"
