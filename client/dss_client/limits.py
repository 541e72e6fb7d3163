"""Bounds and paces that several modules of the client take, with units last and reasons."""

from dss_core.limits import CREDIT_RECORDS

GATHER_MS = 2
"""How long a producer lets records of an idle stream gather while something is in flight."""

PRODUCER_BUFFER_BYTES = 32 << 20
"""Unacknowledged bytes of a producer; beyond that, senders wait or are refused."""

RECORD_OVERHEAD_BYTES = 32
"""How many bytes a record counts beside its own, so that empty records are bounded too."""

HEAP_KEPT_BYTES = 16 << 20
"""How much memory malloc keeps for messages, see `dss_client._malloc_heap`."""

YIELD_EVERY_S = 0.005
"""Handing out buffered records never holds the event loop longer than this."""

ACKED_RANGES_KEPT = CREDIT_RECORDS
"""How many ranges of reported acks a session remembers, the newest, 1 MB at most: copies of their
records that cross the reports may still come, and the usual credit has no more in flight."""

CREDIT_PARTS = 2
"""Once acks for one part in so many of the credit wait, they are sent at once."""

FLUSH_RECORDS = CREDIT_RECORDS // CREDIT_PARTS
"""After this many records the hand-out pauses until acks are sent: half of the usual credit, so
that the next records come while the user works on the rest."""

LOOP_LOOK_S = 0.05
"""How often the watch checks whether the loop was held: 20 wake-ups a second of a loop that only
waits are half a thousandth of a core."""

PING_OF_LEASE = 0.25
"""The daemon is pinged this often, as a share of the lease: from each answer on the client is sure
for 0.4 leases after it asked."""

PINGS_UNANSWERED_MAX = 3
"""After this many rounds without an answer to a ping, the connection counts as lost."""

REVOKE_WAIT_OF_DEADLINE = 0.8
"""How long outstanding acks are awaited after a revoke, as a share of its deadline: the daemon
makes its own final report after nine tenths."""

CALL_TIMEOUT_S = 30.0
"""An administrative call that takes longer has failed."""

CLOSE_TIMEOUT_S = 5.0
"""How long closing waits for the daemon to take the last acks."""

GRACE_S = 20.0
"""The grace for running work at a SIGTERM: longer than most handlers take, and well within the 90 s
after which systemd kills."""

ENDED_GRANTS_MAX = 256
"""How many grants that are over are still watched for late acks."""

REFUSALS_A_REPORT = 1_024
"""How many naks one report has. Each may have two texts of 1 KiB: a message holds twice as many."""

AWAY_S = 600.0
"""How long a daemon may be away before the driver of a job ends: long enough for a restart after a
crash, or for room on a full disk. Counted anew when the daemon was heard in between."""

HANDY_RECORDS = 128
"""How many records a thread makes at once before it hands them out. A lock for each batch costs a
nanosecond a record, and the records are gone before the cycle collector looks, every 700
objects."""
