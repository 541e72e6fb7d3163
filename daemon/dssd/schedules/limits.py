"""Bounds of schedules and tasks that several modules take, with units last and reasons."""

PREVIEWED_MAX = 100
"""Due times in one answer."""

RUN_TIMEOUT_MS_MIN = 1_000
"""A shorter one stops what has hardly begun."""

RUN_TIMEOUT_MS_MAX = 7 * 24 * 3_600 * 1_000
"""The scrub of a large log takes days; nothing takes a week."""

TIMES_DESCRIBED = 5
"""Due times that the description of a schedule names."""

SCRUB_RATE = "16M"
"""What a scrub reads in a second where nothing is said: a tenth of a slow disk, 1.4 TB a day."""

DAMAGE_TOLD_MAX = 100
"""Damaged places that one scrub tells as events; the rest is in its output and counted."""
