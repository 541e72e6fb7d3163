"""Bounds and paces that several modules of the client take, with units last and reasons."""

from dss_core.limits import CREDIT_RECORDS

GATHER_MS = 2
"""While something is in flight, a producer lets records of an idle stream gather for so long."""

PRODUCER_BUFFER_BYTES = 32 << 20
"""Unacknowledged bytes of a producer; beyond that, senders wait or are refused."""

RECORD_OVERHEAD_BYTES = 32
"""What a record counts for beside its own bytes, so that empty records are bounded too."""

HEAP_KEPT_BYTES = 16 << 20
"""What malloc is made to keep for messages, see `dss_client._malloc_heap`."""

YIELD_EVERY_S = 0.005
"""Handing out buffered records never holds the event loop longer than this."""

ACKED_RANGES_KEPT = CREDIT_RECORDS
"""So many ranges of acks that were reported last a session remembers, 1 MB at most: copies of their
records that cross the reports may come still, and no more are out with the usual credit."""

CREDIT_PARTS = 2
"""Once acks for one of so many parts of the credit wait, they are sent at once."""

FLUSH_RECORDS = CREDIT_RECORDS // CREDIT_PARTS
"""After so many records the hand-out pauses for the acks to go: half of the usual credit, so that
the next records come while the user works on the rest."""

LOOP_LOOK_S = 0.05
"""How often it is looked whether the loop was held: 20 wake-ups a second of a loop that only waits
are half a thousandth of a core."""

PING_OF_LEASE = 0.25
"""The daemon is pinged this often, as a share of the lease: from each answer on the client is sure
for 0.4 leases after it asked."""

PINGS_UNANSWERED_MAX = 3
"""A ping unanswered for so many rounds means that the connection is lost."""

REVOKE_WAIT_OF_DEADLINE = 0.8
"""How long outstanding acks are awaited after a revoke, as a share of its deadline: the daemon
makes its own final report after nine tenths."""

CALL_TIMEOUT_S = 30.0
"""An administrative call that takes longer has failed."""

CLOSE_TIMEOUT_S = 5.0
"""How long closing waits for the daemon to take the last acks."""

FETCH_QUIET_S = 10.0
"""A fetch that still waits for more gives what is here once nothing came for so long: what the
program has elsewhere and has not settled may have taken the credit for the rest."""

GRACE_S = 20.0
"""For what is under way at a SIGTERM: longer than most handlers take, and well within the 90 s
after which systemd kills."""

ENDED_GRANTS_MAX = 256
"""Grants that are over and still watched for acks that come too late."""

REFUSALS_A_REPORT = 1_024
"""Each may have two texts of 1 KiB: so many fit into a message twice."""

AWAY_S = 600.0
"""How long a daemon may be away before the driver of a job ends: a restart after a crash, or a disk
that was full. Counted anew when it was heard between."""

HANDY_RECORDS = 128
"""So many records a thread makes at once before it hands them out: a lock each time is a nanosecond
a record, and they are gone before the collector of cycles looks, every 700 objects."""
