"""Fields of what waits in retry queues and is among dead letters."""

from dssctl.fields.model import Field, Fields, Type, anything, moment, number, size, text

QUEUE_ENTRY: Fields = (
    text("stream", "Where the record is that failed."),
    number("offset", "Its offset there."),
    text("level", "retry or dead."),
    number("queue_offset", "Of the entry, in its queue."),
    text("subject", "What the record is about."),
    text("key", "Its ordering key, where it is text.", optional=True),
    text("key_base64", "Its ordering key, where it is no text.", absent=True),
    size("payload_bytes", "How long its content is."),
    number("attempt", "Attempts that failed."),
    number("redrives", "How often it came back from the dead letters."),
    text("cause", "refused, rejected, ack wait, died, given up or redriven."),
    text("error_type", "What kind of error it was.", optional=True),
    text("error", "What the error said.", optional=True),
    text("fingerprint", "The same for errors that differ in numbers only.", optional=True),
    text("client_id", "Who had it last.", optional=True),
    moment("appended_at", "When the record came."),
    moment("first_failure_at", "When it failed first.", optional=True),
    moment("entered_at", "When it came to this queue: died, or failed last."),
    moment("due_at", "When it comes again; of the retry queue.", optional=True),
    Field("headers", Type.ITEMS, "Its headers, in their order; of peek.", "Header", absent=True),
    anything("payload", "Its content; of peek.", optional=True, absent=True),
    text("payload_base64", "Its content, where it is no text; of peek.", absent=True),
    text("decoded_as", "text, json or hex; of peek.", absent=True),
)

QUEUE_ERROR: Fields = (
    number("count", "So many entries are of it."),
    text("error_type", "What kind of error it is.", optional=True),
    text("error", "What the newest of them said.", optional=True),
    text("cause", "How the newest came there."),
    text("fingerprint", "Names it for --error; none: the cause does.", optional=True),
    moment("newest_at", "When the newest came."),
)
