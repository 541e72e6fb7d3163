"""Every bound of the decisions about schedules, with its unit last and its reason."""

SCHEDULE_LATE_MS = 60_000
"""A run that begins so late is no catch-up: a busy loop, or a machine that slept for a moment. Cron
has no times nearer to each other."""

SCHEDULE_CLOCK_BACK_MS = 3 * 3_600 * 1_000
"""A clock that is set back by less repeats nothing, and the schedule waits until it has come to
where it was; by more it had been wrong, and the schedule goes on from now. Cron does the same."""

SCHEDULE_RETRY_MS_MAX = 3_600 * 1_000
"""However often it failed, a run waits no longer for its next attempt."""
