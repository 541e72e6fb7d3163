"""Bounds of sessions, of their own work and of what lies in the daemon for their clients.

Units last, with reasons."""

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

READ_AT_ONCE_BYTES_MAX = 256 << 10
"""What of grown streams a session reads at once before it leaves the rest to its readers, which
give way to each other: copying so much takes 0.1 ms."""

READ_AT_ONCE_COST_BYTES = 16 << 10
"""What such a read counts for beside its bytes, so that there are sixteen at most: each takes 0.1
to 0.2 ms with its steps of the delivery window, and a turn on the loop is 2 ms."""


REFUSALS_PART_ALONE = 6
"""A session that refuses without end, alone, has the event loop for one part in so many to take its
refusals. The reads and deliveries that they cause take up to three times as much again."""

REFUSALS_PART = 10
"""The same of many such sessions, all together: what each is sent comes in smaller pieces then."""

REFUSALS_STEP_S_MAX = 0.01
"""What a step of refusals counts for at most, five times its usual length: where the process does
not run for a while in it, others had the processor already."""

DELIVERY_BYTES_MAX = 256 << 20
"""What was read for all sessions and not yet sent: the whole credit of thirty, a usual frame of two
thousand."""

BUNDLE_DELIVERIES_MAX = 64
"""Deliveries in one item at most: what a client takes in between two looks at its other work."""

DELIVERY_WRITE_COPIES = 3
"""How often the bytes of a message are there while it is written: in it, as what it becomes, and in
gRPC, until the client's flow control lets them go."""

DELIVERY_ROOM_S = 0.01
"""How soon those that wait for a part of it are asked, after another session gave back."""
