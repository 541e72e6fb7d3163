"""Bounds of schedules and tasks that several modules take, with units last and reasons."""

RUN_TIMEOUT_MS_MIN = 1_000
"""A shorter one stops what has hardly begun."""

RUN_TIMEOUT_MS_MAX = 7 * 24 * 3_600 * 1_000
"""The scrub of a large log takes days; nothing takes a week."""
