"""Fields of bulk jobs, and of the chunks of their manifests."""

from dssctl.fields.model import Fields, items, moment, number, size, text, texts, truth

JOB: Fields = (
    text("name", "Its name."),
    number("job_id", "Its number, which no other job gets."),
    text("kind", "replay, export, backfill, audit or transform."),
    text("engine", "What is to drive it."),
    text("state", "active, paused, done, failed or cancelled."),
    text("source", "The topic that it reads.", optional=True),
    text("target", "The topic that it writes to.", optional=True),
    text("filter", "What its driver takes of the source.", optional=True),
    number("published", "Chunks that are published."),
    number("chunks", "Chunks of its manifest."),
    number("records", "Records in the chunks that are published."),
    size("bytes", "Bytes in the chunks that are published."),
    size("rate_bytes_s", "Published a second at most; none where it is not paced.", optional=True),
    text("driver", "Who drives it, or drove it last.", optional=True),
    truth("driver_lives", "Whether its driver holds the lease now."),
    number("epoch", "How many drivers have taken it."),
    text("said", "What its driver said last of itself.", optional=True),
    moment("said_at", "When it said so.", optional=True),
    moment("created_at", "When it was made."),
    moment("ended_at", "When it ended.", optional=True),
    text("failure", "Why it failed or was cancelled.", optional=True),
    number("revision", "Rises with each change."),
    texts("next", "What can be done about it now; of describe only.", absent=True),
    items("manifest", "JobChunk", "Its chunks; of describe --chunks only.", absent=True),
)

JOB_CHUNK: Fields = (
    number("chunk", "Its number, from 0 on; chunks are published in this order."),
    text("state", "published or open."),
    items("reads", "JobRange", "What it reads of the source."),
    text("input", "What it reads elsewhere, in the words of its driver.", optional=True),
    number("records_planned", "Records that it reads, at most."),
    size("bytes_planned", "Bytes that it reads, about."),
    number("records", "Records that were published.", optional=True),
    size("bytes", "Bytes that were published.", optional=True),
    items("wrote", "JobOffsets", "Where its records are in the target."),
    text("output", "What is kept of a chunk that was written elsewhere.", optional=True),
    moment("published_at", "When it was published.", optional=True),
)

JOB_LOG_LINE: Fields = (
    moment("at", "When; a line without a time of its own has that of the line before."),
    text("by", "driver or daemon."),
    text("text", "What was said."),
)

JOB_RANGE: Fields = (
    text("stream", "The stream."),
    number("start", "The first offset."),
    number("end", "The offset behind the last."),
)

JOB_OFFSETS: Fields = (
    number("partition", "Of the target."),
    number("start", "The first offset."),
    number("end", "The offset behind the last."),
)
