"""Every bound of what runs on Spark, with its unit last and its reason."""

STAGING_TASKS_MAX = 64
"""Tasks that stage one chunk: more of them would write frames far below the usual size, and a
task costs some ten milliseconds."""

STAGED_BATCH_BYTES = 8 << 20
"""Records of one partition gathered before they are cut into frames: flat memory, usual frames."""

CHUNKS_AHEAD_MAX = 4
"""Chunks worked on at once: while one waits for its commit others are read, and none of them holds
more than a chunk's files."""

ARROW_ROWS_PER_BATCH = 8_192
"""Rows that Spark hands to Python at once: at 200 bytes each, a batch stays in the cache."""

SLICE_ROWS = 65_536
"""Rows of input files that one task reads and makes into records."""

TASK_ATTEMPTS = 3
"""How often a task of a local master may fail; Spark's own default there is once."""

DRIVER_MEMORY = "1g"
"""Of the JVM, unless `--conf spark.driver.memory` says otherwise: records pass through tasks, and
the driver holds lists of files."""

MASTER_CONNECT_S = 3.0
"""How long a master has to take a connection before a job is made for it."""

AUTO_BYTES = 8 << 30
"""What `--engine auto` gives to Spark: below that one process without a shuffle is quicker on one
machine (measured: three times at half a gigabyte)."""

SPOOL_ROW_GROUP_BYTES = 16 << 20
"""Of sorted records that wait for their chunk: a chunk reads few of them besides its own."""

REASON_CHARACTERS_MAX = 500
"""Of what a job says of its failure: Spark repeats a trace for each attempt."""

TERM_S = 10.0
"""What processes of a driver have to end by themselves, before they are killed."""

GROUP_LOOK_S = 0.05
"""How often it is looked whether they have ended."""

AUDIT_TEXT_BYTES_MAX = 16 << 20
"""What a task tells of its share of a chunk: all origins that one range may remember, and more."""
