"""Bounds of answers and of what is kept of calls, with units last and reasons."""

SESSIONS_LISTED_MAX = 2_000
"""In one answer: some 600 KiB of the longest names; a caller asks on behind it."""
