"""Every bound of leaders that is not one of their machine, with its unit last and its reason."""

BAN_MS_MAX = 366 * 24 * 3_600_000
"""The longest that a client may be kept out of a group. A wall clock that was wrong over a restart
makes a ban no longer than this."""

TAKE_OVER_LOOK_MS = 100
"""Between two looks at who took the streams of a lost member: each goes through those not taken."""
