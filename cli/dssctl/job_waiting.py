"""Waiting for the end of a bulk job.

Invariant: the job does not depend on it; if the waiting stops, the person is told how to continue.
"""

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

from dss_core.errors import DriverEnded, JobNotDone, JobNotFound, StillWaiting
from dssctl.advice import outages_noted
from dssctl.connection import ask, connected, require_daemon
from dssctl.job_logs import JOB_LOG_KIND, follow
from dssctl.output import growing, note
from dssctl.output.writer import Growing
from dssctl.progress import settling
from dssctl.settings import Settings

if TYPE_CHECKING:
    from dss_client import Client, Job, WatchUpdate
    from dssctl.started_driver import StartedDriver

DRIVER_LOOK_S = 0.1
"""How soon it is checked again whether a driver that was just started has taken its job."""

DRIVER_LOOKS_MAX = 80
"""A driver takes a second or two to start; after that a person is told that nobody drives the
job."""


def wait_for_job(settings: Settings, job: "Job", driver: "StartedDriver | None" = None) -> "Job":
    """The job once it has ended, in any way; within --timeout, or without a limit.

    Raises:
        DriverEnded: nobody drives it, and the driver that was started for it has ended.
        StillWaiting: it did not end in time.
        JobNotFound: it was removed meanwhile.
        KeyboardInterrupt: the waiting was interrupted.
    """
    waiting = Waiting(settings, job, driver)
    try:
        with outages_noted(settings):
            return asyncio.run(waiting.run())
    except TimeoutError as late:
        now = f"it is {waiting.job.state}, {_chunks(waiting.job)}"
        raise StillWaiting(
            subject=f"The job {job.name}",
            seconds=f"{settings.wait_s:g}",
            wanted="its end",
            now=now,
        ) from late
    except KeyboardInterrupt:
        note(settings, f"the job {job.name} goes on: dssctl jobs wait {job.name}")
        raise


def wait_for_end_of(settings: Settings, name: str, driver: "StartedDriver | None") -> "Job":
    """The job that was just created, once it has ended; its driver may be about to take it.

    Raises:
        DriverEnded: its driver has ended, but the job has not.
        StillWaiting: it did not end in time.
        JobNotFound: it was removed meanwhile.
    """
    job = ask(
        settings, lambda client: taken_soon(client, name) if driver else client.jobs.get(name)
    )
    return job if job.has_ended else wait_for_job(settings, job, driver)


def require_job_done(job: "Job") -> None:
    """Accept only one end.

    Raises:
        JobNotDone: it failed, or was cancelled.
    """
    if job.state != "done":
        reason = job.failure or "no reason was given"
        raise JobNotDone(job=job.name, state=job.state, reason=reason)


async def taken_soon(client: "Client", name: str) -> "Job":
    """The job once the driver that was just started has it; as it is, if none takes it.

    Raises:
        JobNotFound: there is none.
    """
    for _ in range(DRIVER_LOOKS_MAX):
        job = await client.jobs.get(name)
        if job.has_ended or job.driver_lives:
            return job
        await asyncio.sleep(DRIVER_LOOK_S)
    return await client.jobs.get(name)


def follow_job(settings: Settings, job: "Job") -> None:
    """Print the log of a job until it has ended."""

    async def told(listing: Growing) -> None:
        async with connected(settings) as client:
            await require_daemon(client, settings)
            await follow(client, job, listing.add)

    with growing(settings, JOB_LOG_KIND) as listing, outages_noted(settings):
        asyncio.run(told(listing))


class Waiting:
    """One run."""

    def __init__(
        self, settings: Settings, job: "Job", driver: "StartedDriver | None" = None
    ) -> None:
        self.job = job
        """The last known state."""
        self._driver = driver
        self._settings = settings
        self._there = False
        """Whether the watch has reported it since it began anew."""
        self._told = ""

    async def run(self) -> "Job":
        """Wait for the end."""
        settings = self._settings
        # A job takes hours, so the configured timeout of calls does not apply.
        bound_s = settings.wait_s if "timeout" in settings.flags else None
        async with asyncio.timeout(bound_s), connected(settings) as client:
            await require_daemon(client, settings)
            with settling(settings, f"{self.job.kind} {self.job.name}", "chunks") as show:
                async with aclosing(client.watch("jobs")) as updates:
                    async for update in updates:
                        self.take(update)
                        show(self.job.published, self.job.chunks)
                        if self.job.has_ended:
                            break
                        self.tell_what_stands_still()
                        if await self.is_left(client):
                            break
        return self.job

    def take(self, update: "WatchUpdate") -> None:
        """Take its new state.

        Raises:
            JobNotFound: it no longer exists.
        """
        from dss_client import Job

        there = self._there and not update.anew
        there = there and all(key.name != self.job.name for key in update.removed)
        for _, value in update.changed:
            # Its name may be another job's by now.
            if isinstance(value, Job) and value.job_id == self.job.job_id:
                self.job, there = value, True
        if update.complete and not there:
            raise JobNotFound(job=self.job.name)
        self._there = there

    def tell_what_stands_still(self) -> None:
        """Note once why there is no progress."""
        job = self.job
        why = ""
        if job.state == "paused":
            why = f"the job {job.name} is paused: dssctl jobs resume {job.name}"
        elif not job.driver_lives:
            why = f"nobody drives the job {job.name} now: dssctl jobs drive {job.name}"
        if why and why != self._told:
            note(self._settings, why)
        self._told = why

    async def is_left(self, client: "Client") -> bool:
        """Whether the job ended with its driver, which the updates are about to report.

        Raises:
            DriverEnded: it did not, and the driver that was started for it has ended.
        """
        if self.job.driver_lives or self._driver is None or not self._driver.how_it_ended():
            return False
        self.job = await client.jobs.get(str(self.job.job_id))
        if not self.job.has_ended and not self.job.driver_lives:
            raise DriverEnded(job=self.job.name, how=self._driver.how_it_ended())
        return self.job.has_ended


def _chunks(job: "Job") -> str:
    return f"{job.published} of {job.chunks} chunks are published"
