"""Whether those for whom schedules and bulk jobs act may still do what these do.

Who makes a schedule or a job asks for what it will do, perhaps for years, while they are not there.
So it acts for them, and with what they may do *then*: each run of a schedule and each step of a
driver is looked at by the same demands as the change that made it. Invariant: nothing acts for
somebody who was removed, has expired, is suspended, or has lost what it needs. What was made before
it was kept for whom acts as it did. This module does not know when anything runs.
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
    """Looks who may what at this moment."""

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
