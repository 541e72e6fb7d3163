"""Every bound of leaders that is not one of their machine, with its unit last and its reason."""

BAN_MS_MAX = 366 * 24 * 3_600_000
"""The longest that a client may be kept out of a group. A wall clock that was wrong over a restart
makes a ban no longer than this."""

LAG_COUNT_READS_MAX = 1_024
LAG_COUNT_BYTES_MAX = 16 << 20
"""What a question for the lag of groups may read, to count what their filters take: some 50 ms.
Behind that the lag is an upper bound."""

TAKE_OVER_LOOK_MS = 100
"""Between two looks at who took the streams of a lost member: each goes through those not taken."""

TAKE_OVER_MS_MAX = 10_000
"""How long streams of a lost member may wait for a taker before that is told as it is."""

TAKERS_NAMED_MAX = 5
"""Clients named in the event of a lost member; a group may have thousands."""

RANGES_NAMED_MAX = 8
"""Ranges of streams named for each of them: a sentence has 1,024 bytes."""
