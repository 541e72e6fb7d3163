"""Every bound of the kept events, with its unit last and its reason."""

EVENTS_MAX = 10_000
"""Events that are kept: weeks of a daemon that is well, some 4 MB of the store at most."""

EVENTS_AGE_MS = 30 * 24 * 3_600 * 1_000
"""Who looks for what happened looks back a month at most; older events are removed."""

EVENTS_BATCH_MAX = 255
"""Events in one commit, and one more that counts those that were dropped."""

EVENTS_TRIM_ROWS = 256
"""Events that one commit removes: as many as one adds, a few milliseconds."""

EVENTS_TRIM_EVERY_S = 3_600.0
"""How often events are looked through for old ones: an hour more or less of a month."""

EVENTS_PAGE_ROWS = 250
"""Events that are read from the store in one go: measured 2 ms, which commits then wait for, and
1 ms on the event loop."""

EVENTS_WAITING_MAX = 1_000
"""Events that wait to be written, nobody waiting for them; beyond it the oldest are dropped."""

EVENTS_REST_S = 1.0
"""Between two commits of events that nobody waits for: a storm costs one small commit a second."""

EVENTS_RETRY_S = 5.0
"""When a store that refused is tried again, if nobody waits. A full disk is not emptied sooner."""

EVENT_REPEAT_MS = 10_000
"""The same event within this time of its last time is counted and not kept again."""

EVENT_FOLD_MS_MAX = 3_600 * 1_000
"""An event that goes on repeating is kept anew after this time, so that whoever watches hears of it
every hour."""

EVENT_FOLDS_MAX = 1_024
"""Events whose repetitions are recognised, the latest: what is told of each is held in memory."""

EVENT_RANGES_MAX = 4_096
"""Ranges that are known to have been told, the latest; each is told once."""

EVENT_SUBJECT_BYTES_MAX = 1_024
EVENT_SENTENCE_BYTES_MAX = 1_024
EVENT_FIELD_BYTES_MAX = 256
EVENT_FIELDS_MAX = 8
"""What one event may say, 4 KiB together. A longer text is cut, never a reason to fail: the names
in it come from clients."""

EVENTS_LISTED_MAX = 200
"""Events in one answer of a listing: 800 KiB of the longest ones, below the bound of a message."""

EVENT_WATCHES_MAX = 64
"""Calls that follow the events: each reads the store when something happened."""

ERRORS_SHOWN_MS = 24 * 3_600 * 1_000
"""`dssctl daemon status` counts the errors of so long: a day, so that no shift misses any."""
