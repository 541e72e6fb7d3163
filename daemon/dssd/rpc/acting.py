"""Checks that the owners of schedules and bulk jobs still have the permissions that these need.

A schedule or a job may run for years after its owner created it. So it acts with the permissions
that its owner has at the time of each run: each run of a schedule and each step of a driver is
checked against the same demands as the change that created it. Invariant: nothing acts for an owner
who was removed, has expired, is suspended, or lost a needed permission. Schedules and jobs from
before owners were stored act without a check. This module does not know when anything runs.
"""

from collections.abc import Iterable

from dss_core.errors import OwnerRefused, PermissionDenied
from dssd.access.access import Access
from dssd.access.permissions import Demand
from dssd.rpc.demands import Known, demands_of_data, demands_of_task
from dssd.schedules.definitions import arguments_of
from dssd.store.job_rows import JobRow
from dssd.store.schedule_rows import ScheduleRow


class Acting:
    """Checks the present permissions of owners."""

    def __init__(self, access: Access, known: Known) -> None:
        self._access = access
        self._known = known

    def check_schedule(self, row: ScheduleRow) -> None:
        """Check before a run.

        Raises:
            OwnerRefused: whom it acts for may not do this any more.
        """
        demands = demands_of_task(arguments_of(row), self._known)
        how = f"dssctl schedules edit {row.name}, or pause and resume it"
        self._check(row.principal, f"The schedule {row.name}", demands, how)

    def check_job(self, row: JobRow) -> None:
        """Check before a driver is given the job, and before a chunk counts.

        Raises:
            OwnerRefused: whom it acts for may not do this any more.
        """
        topics = self._known.topics_of_job(row.name) or ("", "")
        demands = demands_of_data(*topics, self._known.dead_letters_of_job(row.name), self._known)
        how = "dssctl jobs cancel, and make it again"
        self._check(row.principal, f"The job {row.name}", demands, how)

    def _check(self, principal: str, what: str, demands: Iterable[Demand], how: str) -> None:
        if not principal:
            return
        present = self._access.present(principal)
        if present is None:
            why = "who may not call any longer"
            raise OwnerRefused(what=what, principal=principal, why=why, how=how)
        try:
            for demand in demands:
                present.require(demand)
        except PermissionDenied as denied:
            why = f"who may not {denied.fields['action']}"
            raise OwnerRefused(what=what, principal=principal, why=why, how=how) from denied
