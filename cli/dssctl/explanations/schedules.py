"""On conditions of schedules and tasks."""

from collections.abc import Mapping

SCHEDULES: Mapping[str, str] = {
    "DSS1061": """The five fields of a cron expression are minute, hour, day of the month, month and
        day of the week, each a number, a range, a list, * or a step like */15. 0 and 7 are
        Sunday; names of days and months may be used. One that never comes, the 30th of February,
        is refused too. dssctl schedules preview --cron '...' shows what an expression means.""",
    "DSS1062": """Time zones have the names of the tz database, Europe/Berlin for one, or UTC. The
        machine of the daemon has to know it: its package tzdata may be missing.""",
    "DSS1112": """With --lock a task is run only where no other process holds that file locked: a
        run that was started before has not ended. Nothing was asked of the daemon.""",
    "DSS2061": """A schedule of this name is there. dssctl schedules edit changes it, and keeps
        what is not named; dssctl schedules rm removes it with its history.""",
    "DSS2062": """No schedule has this name: it was never made, or was removed. Names are as
        dssctl schedules ls shows them.""",
    "DSS2063": """The daemon has no such task. dssctl tasks ls shows which there are, what they do
        and what they take; a newer daemon may have more.""",
    "DSS2064": """A schedule whose overlap policy is skip has one run at a time, and one of it has
        not ended, or waits for its next attempt. With the policy queue one run waits for it, with
        allow it begins beside it.""",
    "DSS2065": """A task began and did not do all of its work: the message says why. What it did
        before that stays done. A scheduled run is tried again where the schedule says so.""",
    "DSS3061": """The daemon keeps so many schedules and no more: each keeps a history. Remove one
        that is not needed.""",
}
