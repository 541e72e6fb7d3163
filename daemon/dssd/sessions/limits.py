"""Bounds of sessions, of their work and of the bytes that they hold for their clients.

Units last, with reasons."""

from dss_core.limits import SESSION_GRACE_S

SESSIONS_MAX = 65_536
"""How many sessions, with and without a connection; each costs a row and some kilobytes."""

GIVES_WAY_AFTER_MS = SESSION_GRACE_S * 1_000
"""How long a session without a connection is safe from giving way: its client may come back."""

DELIVERY_BYTES_MAX = 256 << 20
"""The bytes read for all sessions and not yet sent: the whole credit of thirty sessions, or a usual
frame for two thousand."""

SESSIONS_GIVE_WAY_AT_ONCE = 64
"""How many abandoned sessions one commit removes when there is no room for a new one."""

CLOSED_ROWS_MAX = 256
"""Rows of disconnected sessions in one commit; attaching one of them again waits for it."""

DISCARDED_AT_ONCE_MAX = 256
"""Sessions that are discarded with one commit; attaching one of them again waits for it."""

DISCARDS_MAX = 32
"""How many sessions are cleaned up at a time: the store groups their commits."""
