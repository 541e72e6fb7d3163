"""Every bound that client and daemon must agree on, with its unit last and its reason.

Bounds that concern one side only stand in that package's own ``limits.py``.
"""

from typing import NamedTuple

RECORD_BYTES_MAX = 1 << 20
"""One record: key, payload and headers together. Larger things belong in an object store."""

FRAME_BYTES_MAX = 4 << 20
"""One frame, with its header; also what a gRPC message must have room for."""

FRAME_BYTES_USUAL = 128 << 10
"""Where a producer closes a frame: below malloc's mmap threshold, protobuf copies are cheap."""

STAGED_READ_BYTES = 2 << 20
"""Frames of a staged file that are read, checked and copied at once: enough of them that calls into
Arrow count little, and few enough for the processor's cache."""

WRITEV_BUFFERS_MAX = 1_024
"""What Linux takes in one call (IOV_MAX)."""

FRAME_RECORDS_MAX = 65_535
FRAME_SUBJECTS_MAX = 4_096
"""Different subjects of a frame: checking more would hold the daemon's loop for too long. A frame
of the usual size cannot have so many records."""

SUBJECT_TABLE_BYTES_MAX = 256 << 10
"""The subjects of a frame together, for the same reason; twice a frame of the usual size."""

ROWS_LAYOUT_RECORDS_BELOW = 32
"""Below this many records, rows are smaller and faster to read than Arrow (measured)."""

MESSAGE_BYTES_MAX = FRAME_BYTES_MAX + (64 << 10)
"""One gRPC message: a frame of the largest size and what stands around it."""

METADATA_BYTES_MAX = 8 << 10

SUBJECT_BYTES_MAX = 1_024
SUBJECT_LEVELS_MAX = 64
NAME_BYTES_MAX = 255
KEY_BYTES_MAX = 65_534
"""A row head has 16 bits for it, and the highest value means that there is no key."""

HEADERS_MAX = 64
HEADER_BYTES_MAX = 8 << 10
"""Of one record, names and values together: headers are facts about it, no second payload."""

LEVELS_MAX = 4
"""Numbers of grants leave room for so many levels of a lane."""

ERROR_TEXT_BYTES_MAX = 1_024
"""Of an error's text, and of its type; what is longer is cut."""


class RecordLimits(NamedTuple):
    """What one record may have."""

    record_bytes: int
    headers: int
    header_bytes: int
    """Names and values together."""
    reserved_headers: bool = False
    """Whether it may have those that no producer may set: `dss_core.lane.is_reserved`."""


RECORDS = RecordLimits(RECORD_BYTES_MAX, HEADERS_MAX, HEADER_BYTES_MAX)
"""What a record of a producer may have; `dss_core.lane.ENTRIES` may have more."""

PARTITIONS_MAX = 4_096
STORAGE_TOPICS_MAX = 16
"""Generations of a topic that are kept at a time: each costs its readers a stream a partition."""

TOPIC_PATTERNS_MAX = 64

UNIX_SOCKET_PATH_BYTES_MAX = 107
"""sun_path holds 108 bytes with its final zero."""

CREDIT_RECORDS = 8_000
CREDIT_BYTES = 8 << 20
"""A session's delivery window, unless the client asks for less. Twice four frames of small records:
four of them go in one message while the client works on the others (measured)."""

ACKED_RANGES_MAX = 1_024
"""Acked ranges above a floor; at the cap, delivery of the stream pauses. Records that are in flight
then may add more ranges."""

LEASE_MS = 6_000
"""L: how long a grant outlives the last answered ping of its borrower."""

SETTLE_INTERVAL_MS = 5
"""The client reports its hand-out frontier at the latest this often."""

SETTLE_RANGES_MAX = 4_096
"""Ranges in one report of a client about one grant: bounds what the daemon keeps of it. A client
with more ranges sends several reports."""

NAK_DELAY_MS_MAX = 24 * 3_600_000
"""The longest delay of a nak: until it is over, the stream's ack floor cannot rise."""

SPAN_MS_MAX = (1 << 63) - 1
"""What a span of the wire holds, and a column of the store; each has a bound of its own below."""

SUBSCRIPTIONS_PER_SESSION_MAX = 256
SESSION_EXPIRY_S_MAX = 7 * 24 * 3_600
SESSION_GRACE_S = 10
"""How long a session of expiry 0 waits for its client to reconnect."""

PRODUCER_WINDOW_SEQUENCES = 5
"""The last sequences per (producer, stream) whose answers the daemon can repeat."""

REDRIVE_RATE = 500
REDRIVE_RATE_MAX = 1_000_000
"""The default rate of a redrive, in records a second over all streams: measured so that other
traffic keeps 0.95 of its rate (docs/decisions/0055). And the highest rate, which is more than a
daemon can move."""

CHECKSUM_COPY_BYTES_MAX = 4_096
"""Up to here, joining the two checksummed parts is faster than feeding them one by one."""

COPY_HOPS_MAX = 16
"""How often a record may be copied from topic to topic by bulk jobs: two jobs that feed each other
come to an end."""

CHUNK_BYTES_MAX = 256 << 20
"""The staged files of one chunk of a bulk job: publishing it holds its target back for a moment,
and its copy needs that much room."""

CHUNK_FRAMES_MAX = 65_536
"""Frames of one chunk: each is stamped while the target is held back."""

CHUNK_FILES_MAX = 4_096
"""Staged files of one chunk: one for each partition that a topic may have."""

RESTORE_EPOCHS_RAISED = 1 << 40
"""How far a restore raises epochs of 64 bits: more than a daemon assigns between a backup and the
loss of its disk. So an epoch that is that far behind is from before a restore."""

RESTORE_OFFSETS_RAISED = 1 << 40
"""How far a restore raises the offsets of a stream: more than it assigns between a backup and the
loss of the disk, twelve days at a million records a second. 63 bits have room for eight million
restores. No stream has so many records, so counts of offsets leave such a gap out."""
