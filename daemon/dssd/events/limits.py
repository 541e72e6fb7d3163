"""Bounds of the kept events that several modules take, with units last and reasons."""

EVENTS_MAX = 10_000
"""Events that are kept: weeks of a daemon that is well, some 4 MB of the store at most."""

EVENTS_TRIM_ROWS = 256
"""Events that one commit removes: as many as one adds, a few milliseconds."""

EVENTS_PAGE_ROWS = 250
"""Events that are read from the store in one go: measured 2 ms, which commits then wait for, and
1 ms on the event loop."""

EVENT_SUBJECT_BYTES_MAX = 1_024
EVENT_SENTENCE_BYTES_MAX = 1_024
EVENT_FIELD_BYTES_MAX = 256
EVENT_FIELDS_MAX = 8
"""What one event may say, 4 KiB together. A longer text is cut, never a reason to fail: the names
in it come from clients."""

EVENTS_LISTED_MAX = 200
"""Events in one answer of a listing: 800 KiB of the longest ones, below the bound of a message."""

ERRORS_SHOWN_MS = 24 * 3_600 * 1_000
"""`dssctl daemon status` counts the errors of so long: a day, so that no shift misses any."""
