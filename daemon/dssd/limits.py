"""Bounds on which several parts of the daemon have to agree, with units last and reasons.

A bound that one module alone takes stands there; those that clients must agree on stand in
`dss_core.limits`.
"""

from dss_core.limits import CREDIT_BYTES, FRAME_BYTES_MAX, LEASE_MS

# Starting and stopping

STOP_CALLS_S = 6.0
"""How long calls in flight may take to end; of the 10 s that a stop may take, the rest is for log
and store."""

STOP_CANCEL_S = 1.0
"""What still runs after that is cancelled: health watchers, mostly."""

RETENTION_INTERVAL_S = 30.0
"""Retention looks at whole segments; more often would find nothing."""

UNREAD_TOLD_EVERY_MS = 3_600 * 1_000
"""Where retention goes on taking what a group has not acknowledged, or is about to, operators are
told this often."""

UNREAD_LOSSES_SHOWN_MAX = 64
"""Pairs of a topic and a group in the daemon's status, the last ones; all are counted."""

# The server

KEEPALIVE_TIME_MS = 2_000
PING_TIMEOUT_MS = 3_000
"""A frozen peer is cut after both together, 5 s, which is below the lease. (The option that
gRPC names keepalive_timeout_ms does not fire.)"""

CONNECTIONS_MAX = 4_096
"""Connections of all clients; fewer where the process may not have twice as many descriptors."""

CONCURRENT_CALLS_MAX = 4_096
"""Calls of all connections together; beyond it gRPC answers RESOURCE_EXHAUSTED."""

LOOP_TURN_S = 0.002
"""How long a loop over a client's input may hold the event loop: no step may take 5 ms."""

# Publishing

APPEND_BYTES_IN_FLIGHT_MAX = 48 << 20
"""Unanswered bytes that all calls together have in the log: below the log's own bound, so that
callers wait and are not refused."""

SUBJECT_TABLE_CACHED_BYTES_MAX = 4_096
SUBJECT_TABLES_CACHED_MAX = 1_024
"""Verdicts on subject tables kept per topic, and the largest such table. A producer's tables repeat
from frame to frame."""

HASH_KEYS_ONE_FRAME_IN = 64
"""How often the key hashes of an Arrow frame are computed again; the routing is always checked."""

# Reading

READ_CHUNK_BYTES_MAX = 128 << 10
"""One answer of a read; below malloc's mmap threshold protobuf copies are cheap."""

HEAP_KEPT_BYTES = 128 << 20
"""Free pages that are kept for the next burst, on top of those of a quiet time."""

CONFIG_BYTES_MAX = 64 << 10
"""Size of a configuration file; a longer one is refused."""

# The store

STORE_WAL_BYTES_MAX = 64 << 20
"""Above this the write-ahead log gives its space back to the file system."""

PAGE_ROWS = 10_000
"""Rows a page: some 10 ms of reading, which commits then wait for."""

BLOCK_ROWS = 64
"""Rows that one statement writes. Each step of a statement gives up the interpreter's lock and
must win it back from a busy event loop; blocks are also a third faster when nobody contends."""

# The log

SEGMENT_BYTES_MAX = 256 << 20
"""Where a segment file is rolled: a scan of it after a crash takes a fraction of a second."""

SEGMENT_FRAMES_MAX = 262_144
"""The same in frames, where they are small: bounds that scan too, and the index of an active
file, which is kept in memory until it is sealed (12 MiB)."""

RUN_BYTES_MAX = 64 << 10
"""A run closes once it is this long: what a lookup inside a run has to walk over."""

WRITER_QUEUE_BYTES_MAX = 64 << 20
"""Frames that wait for the disk; beyond it appends are refused as overloaded."""

WATERMARK_BYTES = 16 << 20
"""How far a file may run ahead of its stored watermark: what a start after a crash copies."""

WATERMARK_FRAMES = 16_384
"""The same in frames, where they are small: what such a start has to check one by one."""

OS_SYNC_S = 1.0
"""Frames of durability os are made durable so long after they came: what a loss of power takes of
them, and what a start after a kill reads."""

CEILING_AHEAD_MIN = 1_024
CEILING_AHEAD_MAX = 1 << 20
"""How far above a stream's end its ceiling is raised, in offsets: at most so many are left out by a
start after a kill. A ceiling that is passed costs a sync a batch."""

TAIL_CACHE_BYTES_MAX = 64 << 20
"""Recent frames kept in memory, so that readers at the tail need no system call."""

LOG_DESCRIPTORS_MAX = 256
"""Segment files open for reading at a time."""

LOG_ACTIVE_DESCRIPTORS_MAX = 512
"""Segment files open for appending at a time: the topics that take frames in one second or so."""

LOG_DESCRIPTORS_SHARE = 8
"""Each of the two takes at most this part of what the process may open."""

LOG_INDEX_BLOCKS_MAX = 4_096
"""Index blocks kept in memory: 16 MiB."""

READ_LOOP_US = 2_500
"""When a read returns what it has: below the 5 ms that no step may hold the loop."""

READ_SPAN_BYTES_MAX = 256 << 10
READ_GAP_BYTES_MAX = 32 << 10
"""Runs so near to each other are read together, so many bytes at once: what lies between them costs
less than to ask the kernel again (measured: 5 us)."""

READ_HEAD_BYTES = 4 << 10
"""What is read of a frame to judge its subjects: header and table of nearly all frames."""

# Delivering

ISOLATE_AFTER_DOUBTS = 4
"""A record in flight at so many vanished clients is sent alone, and the stream continues around it.
By then 15 of 8,000 records were in flight, so a few lose the order of their keys, not hundreds."""

READ_AGAIN_MS = 250
READ_AGAIN_MS_MAX = 8_000
"""A read of the log that failed is tried again, after twice the time at each failure."""

DAMAGED_RANGES_MAX = 64
"""Ranges of damaged offsets that progress names, of one stream and group; more are only counted."""


OUT_BYTES_MAX = CREDIT_BYTES + FRAME_BYTES_MAX
"""The hard limit of bytes in flight, for redeliveries and reserves too: as much as one subscription
reaches with new records in frames of the largest size."""

OUTGOING_ITEMS_MAX = 16_384
"""Items without records that a client may leave unread before its connection is ended."""

SILENT_HOLDER_PERCENT = 50
SILENT_HOLDER_MS = LEASE_MS * SILENT_HOLDER_PERCENT // 100
"""A silent holder that is asked for its stream keeps it for half a lease, 3 s. The final report is
made without it after nine tenths of that: longer than the 0.4 leases for which a client without
contact still hands out records, by its own clock."""

CLOSE_DRAIN_S = TAKEOVER_DRAIN_S = SILENT_HOLDER_MS / 1_000
"""Time for a client to report its hand-out frontier when an operator closes its session or another
client takes its client id."""

SETTLE_STEP_RANGES = 256
"""Ranges of a client's settles, and settles, that are taken before other tasks get their turn: each
takes up to 7 us."""

NAK_RANGES = 12
"""A nak counts as so many acked ranges in such a step: measured up to 90 us."""

# Groups

ACK_WAIT_MS = 30_000
ACK_WAIT_MS_MAX = 24 * 3_600 * 1_000
"""How long a record may stay handed out before it comes again: the default, and at most a day."""

MAX_DELIVER_MAX = 1_000
BACKOFF_MS = (1_000, 5_000, 30_000, 300_000)
BACKOFF_STEPS_MAX = 16
"""Attempts before a record is dead: at most. The default backoff after each failure: a hiccup is
over in a second, an outage takes minutes. And the number of backoff steps of a group; each is at
most `NAK_DELAY_MS_MAX`."""

FULL_DISK_RETRY_S = 1.0
"""How long a leader waits before it tries again to store progress on a full disk."""

# Leaders, borrowers, delivery

RESEND_FIRST_MS = 250
"""When a leader or a borrower sends again what was not answered; after that at doubling intervals.
Above any round trip inside one process, far below the lease."""

REVOKE_DEADLINE_MS = 10_000
"""Deadline for the final report on a stream that moves to another member: consumers have this long
to finish their records."""

UNSUBSCRIBE_MS = 5_000
"""How long a borrower that leaves waits for final reports. Below the lease, so that the leader
still knows the borrower when it says goodbye."""

COMMIT_GATHER_MS_MAX = 1_000
"""The longest time that a commit gathers reports, however slow the last one was: acks wait for it,
and their records are redelivered after a crash."""

COMMIT_STREAMS_MAX = 500
"""Streams of one commit. One step notes them and builds the next: measured 9 µs a stream, and no
step may take 5 ms."""

MOVES_A_STEP_MAX = 200
"""Streams that a rebalance begins to move in one step: measured 5 to 9 µs each. Where there are
more, the step that computes shares begins none: each stream of the group costs it 0.5 µs."""

MOVE_AGAIN_MS = 1
"""Between two steps that begin moves, so that other leaders take their steps."""

REDELIVERY_MS = 1_000
REDELIVERY_MS_MAX = 60_000
"""Backoff after the first nak of a record; each further nak doubles it, up to a minute."""

MOVE_RECORDS_MAX = 512
REFUSED_MOVE_MS = 1_000
"""Entries that a lane appends to its queues at once; its window takes them in as one step, 1 to 2
µs each. And when a failed append is tried again."""

LAST_MOVE_MS = 1_000
"""How long a stream that its client gave back unasked waits for its last move to a queue."""

REVOKE_REPORT_SHARE = 0.9
"""A final report leaves after this share of a revoke's deadline, so that it arrives in time."""
