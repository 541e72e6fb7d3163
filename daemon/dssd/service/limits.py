"""Every bound of the service, with its unit last and its reason."""

BEAT_S = 10.0
"""How often the status is told, where no watchdog wants it more often."""

BEATS_PER_WATCHDOG = 3
"""Beats in the time after which the watchdog ends the daemon: two may be late."""

WATCHDOG_S = 60
"""A loop or a writer that did nothing for so long is not busy but stuck: the slowest sync that was
seen to end took half of it."""

START_S_MAX = 600
"""A start reads what the last daemon wrote since its last mark: seconds, minutes on a slow disk
after a kill."""

STOP_S_MAX = 20
"""A stop ends by itself within 12 s."""

STARTS_MAX = 10
STARTS_WITHIN_S = 300
"""A daemon that fails so often is not started again: restarts do not help."""

RESTART_AFTER_S = 1
"""Clients come back within seconds; less would spin where a start fails at once."""

DESCRIPTORS_MAX = 1 << 20
"""Connections, files of the log: the system's own bound, where that is lower."""

LIFE_WRITE_S_MAX = 1.0
"""How long a daemon that ends at once waits for the disk to take why: that may be what failed."""

LIFE_BYTES_MAX = 4_096
"""What is read of how a daemon ended: it writes some hundred bytes, and a page is read at once."""
