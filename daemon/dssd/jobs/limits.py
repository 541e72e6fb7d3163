"""Bounds of bulk jobs, with units last and reasons."""

JOBS_MAX = 512
"""Jobs that are kept, ended ones included: each has a manifest in the store."""

CHUNKS_MAX = 8_192
"""Of one job: they are made in one commit."""

CHUNK_BYTES_USUAL = 32 << 20
"""What a chunk is planned to read: publishing it holds producers of the target back for some tens
of milliseconds."""

CHUNK_PLANNED_BYTES_MAX = 128 << 20
"""Half of what a chunk may publish: copies are larger than what they are of, by their headers."""

CHUNK_BYTES_MIN = 64 << 10

CHUNK_INPUT_BYTES_MAX = 8 << 10
"""What a planner of another source says of a chunk: some files and rows of them."""

INPUTS_BYTES_MAX = 2 << 20
"""All of these of a job: they come in one message."""

PARAMS_BYTES_MAX = 64 << 10
"""What its driver is told besides."""

CHUNK_OUTPUT_BYTES_MAX = 64 << 10
"""What a driver says of a chunk that it wrote elsewhere."""

DRIVER_BYTES_MAX = 256
SAID_BYTES_MAX = 4 << 10
"""What a driver says of its progress with each renewal."""

ACQUIRE_TOKEN_BYTES_MAX = 64
RATE_BYTES_S_MIN = 1 << 10
HOPS_DEFAULT = 4
"""Copies of copies that a job makes unless it is told otherwise."""

PACE_LOOK_S = 1.0
"""How soon a driver that waits for its turn hears of a pause or a cancellation."""

RESTED_MS_MAX = 1_000
"""All rests within one chunk that is published: who pauses or cancels its job waits for them."""

RESTED_READ_BYTES = 256 << 10
"""What is read and checked at once of a chunk that goes with rests: producers wait for that too."""

TICK_S = 1.0
"""How often leases are looked at."""

HOLD_PENDING_MS = 60_000
"""How long records stay held for a job whose commit was never heard of."""

STATED_BYTES_S = 64 << 20
"""What a plan reckons with where there is no rate: what two cores publish (measured)."""

CHUNKS_LISTED_MAX = 1_000
"""Chunks in one answer."""

END_TOLD_LATE_MS = 60_000
"""What ended so long before the newest kept event was told itself: events are written in their
order, a second after they came, or some more where the store refuses them."""
