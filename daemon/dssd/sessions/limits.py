"""Bounds of sessions, with units last and reasons."""

from dss_core.limits import SESSION_GRACE_S

SESSIONS_MAX = 65_536
"""Sessions with and without a connection; each costs a row and some kilobytes."""

SESSIONS_PRINCIPAL_MAX = 16_384
"""Those of one principal: whoever leaves sessions behind keeps out nobody but himself."""

SESSIONS_GIVE_WAY_AT_ONCE = 64
"""Where there is no room, so many that were left behind make some with one commit."""

GIVES_WAY_AFTER_MS = SESSION_GRACE_S * 1_000
"""Never earlier than this does a session give way: its client may be coming back."""

CLOSED_ROWS_MAX = 256
"""Rows of disconnected sessions in one commit; attaching one of them again waits for it."""

DISCARDED_AT_ONCE_MAX = 256
"""Sessions that are discarded with one commit; attaching one of them again waits for it."""

DISCARDS_MAX = 32
"""Sessions whose belongings are removed at a time: the store takes their commits together."""

STARTED_ROWS_MAX = 4_096
"""Rows of sessions that a start writes with one commit."""
