"""Bounds and times of the machines that stand by themselves, with units last and reasons."""

JOB_LEASE_MS = 15_000
"""How long the driver of a bulk job may be silent: longer than a pause of its collector of garbage,
and short enough that another one goes on soon."""
