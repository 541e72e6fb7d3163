"""Every bound of the drivers of bulk jobs, with its unit last and its reason."""

DRIVER_NICENESS = 10
"""Of a driver, and of all that it starts here: beside whoever produces and consumes it gets a tenth
of a processor, and all that they leave."""

STAGED_BATCH_BYTES = 32 << 20
"""Records gathered before they are routed and written: each partition gets frames of the usual
size, and memory stays flat however large the chunk is."""

STAGED_TABLES_AT_ONCE = 4
"""Tables taken in by one turn of a thread: to hand over each by itself costs more than to keep it
until it is written."""

STAGED_RECORD_BYTES = 64
"""What a record takes in a table beside key, payload and headers: to add up all columns of each
table would take as long as to decode it."""

LOCAL_CHUNKS_AT_ONCE = 2
"""Of the local engine: while the daemon takes one in, the next is staged. More would wait, and each
takes its room on the disk."""

EXPORT_ROWS_PER_GROUP = 131_072
"""Rows of a row group of Parquet: readers prune by them, and larger ones compress little better."""

BACKFILL_ROWS_PER_BATCH = 65_536
"""Rows read and made into records at once."""

BACKFILL_ROWS_PER_CHUNK = 65_536
"""Rows that are published at once: some 16 MiB of usual records."""

BACKFILL_CHUNK_BYTES = 64 << 20
"""Of rows that are longer: the daemon takes 256 MiB, and JSON is larger than what it is made of."""

BACKFILL_PARAMS_BYTES_MAX = 64 << 10
"""What the daemon takes as a job's params, in which a backfill lists its files."""

BACKFILL_FILES_PLAIN_BYTES_MAX = 8 << 10
"""Of that list as people can read it: a longer one is packed, and some thousand files fit."""

COLUMNS_SHOWN_MAX = 20
"""Names of columns in an error, which has to be read, and told to the daemon in 4 KiB."""

CSV_BLOCK_BYTES_USUAL = 1 << 20
"""Of a CSV file, parsed at once: what Arrow takes, too. A row that is longer needs larger ones."""

CSV_BLOCK_BYTES_MAX = (1 << 31) - 1
"""More Arrow does not take, so a row that is longer cannot be read."""

DRIVER_ATTEMPTS_MAX = 3
"""Of a driver that crashes: what came from beside the work, want of memory for one, may have
passed; what comes again ends the job."""

CRASH_SAID_CHARACTERS_MAX = 500
"""Of the reason of a crash beside the progress of a driver: the log has all of it."""

REJECTS_MAX = 100_000
"""Rejected rows of one job; a job with more of them has the wrong options."""

FUNCTION_BYTES_MAX = 32 << 10
"""Text of a transform's file: it is kept in the job's params, which have 64 KiB of JSON."""

FULL_DISK_S = 600.0
"""How long a driver waits for room. Then it ends, and the job waits for the next driver."""

FULL_DISK_REST_S = 1.0
"""Between two tries: what was staged is kept, so a try of a commit costs little."""

AUDIT_EXAMPLES_MAX = 5
"""Places that a report names of each finding: enough to look at, the count says the rest."""

AUDIT_TOP_KEYS_MAX = 64
"""Keys that are counted apart: one with more than a 65th of all records is never missed."""

AUDIT_KEY_SHOWN_BYTES_MAX = 48
"""Of a key, for people: keys may have 65,534 bytes."""

AUDIT_ORIGIN_PAGES_MAX = 16_384
"""Of 65,536 origins each, that an audit remembers to find doubles: 128 MiB, a thousand million
records."""

AUDIT_CHUNK_PAGES_MAX = 512
"""Of them in one chunk: 4 MiB. A header that was made up names an offset far from all others."""

AUDIT_ORIGIN_STREAM_BYTES_MAX = 512
"""Of the stream that an origin names: what is longer is no stream of ours."""

AUDIT_ORDERS_MAX = 4_096
"""Pairs of a stream and a source of its records, whose order is followed from chunk to chunk."""

AUDIT_OUTPUT_BYTES_MAX = 60 << 10
"""What a chunk leaves in the manifest: the daemon takes 64 KiB."""

AUDIT_GROUPS_MAX = 64
"""Groups whose lag a report has, the furthest behind first."""

AUDIT_CHUNK_SOURCES_MAX = 1_024
"""Streams that the origins of one range name and that are told apart: each costs a look at all."""

IN_PLACE_SPAN_BYTES = 4 << 20
"""Read at once from a segment file: few calls, and little memory. A run may be larger."""

IN_PLACE_BATCH_BYTES = 2 << 20
"""Frames that are made into one table: where they are small, the work a table costs more than they
do, and larger ones gain nothing."""

IN_PLACE_TABLES_AT_ONCE = 4
"""Tables read by one turn of a thread, 8 MiB of usual frames: a lease is kept between two turns."""

IN_PLACE_GAP_BYTES = 64 << 10
"""Bytes of other streams that are read along: they cost less than another call."""

IN_PLACE_HOLES_MAX = 64
"""Parts of a range that files did not give and that the daemon is asked for one by one: where there
are more, all of it is asked for at once."""
