"""Bounds of answers and of what is kept of calls, with units last and reasons."""

SESSIONS_LISTED_MAX = 2_000
"""In one answer: some 600 KiB of the longest names; a caller asks on behind it."""

REFUSALS_KEPT_AT_ONCE = 20
"""Refused calls of one principal that are kept one by one, when it was quiet before."""

REFUSAL_KEPT_EVERY_MS = 360_000
"""After those: one event in so long, which counts the others. 240 a day, so that a caller that is
refused without end needs six weeks to fill what is kept, and old events go after a month."""

REFUSED_PRINCIPALS_MAX = 256
"""Principals whose refusals are counted, the latest: each some hundred bytes."""
