"""Bounds of leaders, not of their machine, that several modules take."""

BAN_MS_MAX = 366 * 24 * 3_600_000
"""The longest that a client may be kept out of a group. A wall clock that was wrong over a restart
makes a ban no longer than this."""

TAKE_OVER_LOOK_MS = 100
"""The pause between looks at who took a lost member's streams; a look walks those not taken."""
