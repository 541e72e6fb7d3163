"""Bounds of sessions, of their own work and of what lies in the daemon for their clients.

Units last, with reasons."""

from dss_core.limits import SESSION_GRACE_S

SESSIONS_MAX = 65_536
"""Sessions with and without a connection; each costs a row and some kilobytes."""

GIVES_WAY_AFTER_MS = SESSION_GRACE_S * 1_000
"""Never earlier than this does a session give way: its client may be coming back."""

DELIVERY_BYTES_MAX = 256 << 20
"""What was read for all sessions and not yet sent: the whole credit of thirty, a usual frame of two
thousand."""

SESSIONS_GIVE_WAY_AT_ONCE = 64
"""Where there is no room, so many that were left behind make some with one commit."""

CLOSED_ROWS_MAX = 256
"""Rows of disconnected sessions in one commit; attaching one of them again waits for it."""

DISCARDED_AT_ONCE_MAX = 256
"""Sessions that are discarded with one commit; attaching one of them again waits for it."""

DISCARDS_MAX = 32
"""Sessions whose belongings are removed at a time: the store takes their commits together."""
