"""Bounds and paces that several modules of the client take, with units last and reasons."""

from dss_core.limits import CREDIT_RECORDS

GATHER_MS = 2
"""While something is in flight, a producer lets records of an idle stream gather for so long."""

PRODUCER_BUFFER_BYTES = 32 << 20
"""What a producer holds unacknowledged; beyond it, senders wait or are refused."""

RECORD_OVERHEAD_BYTES = 32
"""What a record counts for beside its own bytes, so that empty records are bounded too."""

HEAP_KEPT_BYTES = 16 << 20
"""What malloc is made to keep for messages, see `dss_client._malloc_heap`."""

COLUMNS_SLICE_RECORDS_MAX = 16_384
"""`send_columns` works in slices of this size, so that the loop is held a few milliseconds."""

YIELD_EVERY_S = 0.005
"""Handing out buffered records never holds the event loop longer than this."""

ACKED_RANGES_KEPT = CREDIT_RECORDS
"""So many ranges of acks that were reported last a session remembers, 1 MB at most: copies of their
records that cross the reports may come still, and no more are out with the usual credit."""

CREDIT_PARTS = 2
"""Where acks for this part of the credit wait, they go out at once."""

FLUSH_RECORDS = CREDIT_RECORDS // CREDIT_PARTS
"""After so many records the hand-out pauses for the acks to go: half of the usual credit, so that
the next records come while the user works on the rest."""

SILENCE_OF_LEASE = 0.4
"""After this share of the lease without a sign of the daemon, hand-out waits for a ping. It is less
than the 3 s after which the daemon may cut off a client that stands still and lend its streams, and
than the 0.67 leases for which a restarted one keeps them."""

LOOP_HELD_S = 0.1
"""Where the loop was held for so long, its process may have stood still, and the daemon may have
noticed a loss of the connection that nobody here could: hand-out waits for a ping. A loop that does
its work in pieces is never held so long."""

LOOP_LOOK_S = 0.05
"""How often it is looked whether the loop was held: 20 wake-ups a second of a loop that only waits
are half a thousandth of a core."""

HELD_AGAIN_S = 2.0
"""So long after such an answer no further one is waited for, unless the daemon is silent: a program
that holds its loop all the time would hand out nothing else."""

PING_OF_LEASE = 0.25
"""An otherwise silent connection is pinged this often, as a share of the lease."""

PINGS_UNANSWERED_MAX = 3
"""A ping unanswered for so many rounds means that the connection is lost."""

REVOKE_WAIT_OF_DEADLINE = 0.8
"""How long outstanding acks are awaited after a revoke, as a share of its deadline: the daemon
makes its own final report after nine tenths."""

CHANNEL_BACKOFF_MS = 100
CHANNEL_BACKOFF_MAX_MS = 300
"""The transport's own pauses are shorter than ours, so that ours rule."""

CONNECT_WAIT_MS = 60_000
"""Above `CALL_TIMEOUT_S`: a daemon that is there but does not answer is late, not unreachable."""

CALL_TIMEOUT_S = 30.0
"""An administrative call that takes longer has failed."""

CLOSE_TIMEOUT_S = 5.0
"""How long closing waits for the daemon to take the last acks."""

GRACE_S = 20.0
"""For what is under way at a SIGTERM: longer than most handlers take, and well within the 90 s
after which systemd kills."""

ACKS_STORED_S = 2.0
"""Acks are durable so long before the daemon was heard last: it stores them within a second."""

EARLIER_ATTEMPT_S = 30.0
"""So long after its stream was taken back an unsettled record holds up its key in this client: the
ack wait of a group that says no other, after which a program has lost its claim in any case."""

RUN_QUEUED_OF_CONCURRENCY = 4
"""`run` holds at most this many records per handler slot, waiting for their key or a slot."""

ENDED_GRANTS_MAX = 256
"""Grants that are over and still watched for acks that come too late."""

GROUPS_PAGE = 500
"""Groups in one answer of a list: some 200 KiB."""

REFUSALS_A_REPORT = 1_024
"""Each may have two texts of 1 KiB: so many fit into a message twice."""

WATCH_PIECE_ITEMS = 100
"""Of what a watch tells, made into values at once: a millisecond or two, in which nothing else runs
in the loop of whoever shows them."""

AWAY_S = 600.0
"""How long a daemon may be away before the driver of a job ends: a restart after a crash, or a disk
that was full. Counted anew when it was heard between."""

SURE_IN_THREADS_S = 0.05
"""A thread that hands out holds no loop, so it asks the loop less often whether the session stands;
the daemon waits for seconds before it lends streams of a client that stands still."""

HANDY_RECORDS = 128
"""So many records a thread makes at once before it hands them out: a lock each time is a nanosecond
a record, and they are gone before the collector of cycles looks, every 700 objects."""

PICKED_RECORDS = 512
"""So many records of an ordered group lie open for threads at most: a call into the loop for each
of their chunks is a tenth of a microsecond a record."""
