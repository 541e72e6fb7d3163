"""Fields of reports of audits."""

from dssctl.fields.model import Fields, fraction, items, moment, number, size, text, texts, truth

AUDIT: Fields = (
    text("health", "healthy, attention or problem."),
    text("verdict", "That in a sentence."),
    text("name", "Of the job."),
    number("job_id", "Its number."),
    text("state", "active, paused, done, failed or cancelled."),
    text("topic", "That was looked at."),
    text("filter", "Of the records that were looked at.", optional=True),
    truth("complete", "Whether all of its range was looked at."),
    number("published", "Chunks that were looked at."),
    number("chunks", "Chunks of its range."),
    number("records", "Records that were looked at."),
    size("bytes", "Bytes of their keys and payloads."),
    number("keyless", "Records without a key."),
    number("problems", "Findings that are problems."),
    moment("created_at", "When the job was made."),
    moment("ended_at", "When it ended.", optional=True),
    items("findings", "AuditFinding", "What was found, problems first."),
    items("streams", "AuditStream", "How records are spread, the fullest stream first."),
    items("keys", "AuditKey", "Keys that may have most records, the most first."),
    items("groups", "AuditGroup", "How far groups were behind at its end, the furthest first."),
    texts("next", "Commands that help, or show more."),
)

AUDIT_FINDING: Fields = (
    text(
        "check",
        "gaps, damage, duplicates, misrouted, order or subjects, which are problems; or lost, "
        "times, unexamined.",
    ),
    text("level", "problem or notice."),
    number("count", "Of offsets, records, or what is not known."),
    text("sentence", "What was found."),
    texts("examples", "The first places."),
)

AUDIT_STREAM: Fields = (
    text("stream", "The stream."),
    number("records", "Its records."),
    size("bytes", "Bytes of their keys and payloads."),
    fraction("share", "Of the records of its storage topic."),
    fraction("of_mean", "Its records by those of a stream on average: 1 is even."),
)

AUDIT_KEY: Fields = (
    text("key", "Its beginning, at most 48 bytes, as text; what is none is written \\\\x.."),
    number("records", "Records that it has, at least."),
    number("records_max", "Records that it has, at most."),
    fraction("share", "Of all records, at least."),
)

AUDIT_GROUP: Fields = (
    text("group", "NAME@FILTER."),
    text("state", "idle, active, rebalancing or stalled."),
    number("lag", "Records that it had not acknowledged."),
)
