"""Fields of plans and operations."""

from dssctl.fields.model import Fields, anything, items, moment, number, text, texts, truth

PLAN: Fields = (
    text("kind", "offsets.rewind for one."),
    text("subject", "The group, topic, client or operation that is changed."),
    number("revision", "Of the subject when it was planned; applied only while it is still so."),
    text("summary", "What would happen, in a sentence."),
    truth("nothing_to_do", "Whether it would change nothing."),
    items("streams", "StreamPlan", "Streams whose cursor moves."),
    items("moves", "StreamMove", "Streams that go to another member."),
    texts("effects", "What else would happen, a sentence each."),
    texts("members", "Clients whose members are concerned."),
    truth("undoable", "Whether an operation could take it back."),
    text("not_undoable_because", "Why none could.", optional=True),
    moment("undoable_until", "How long one could.", optional=True),
    moment("planned_at", "When it was planned."),
    anything("change", "What was asked for, with times and offsets resolved."),
)

STREAM_PLAN: Fields = (
    text("stream", "Which."),
    number("floor", "The first unacknowledged offset now."),
    number("target", "The first unacknowledged offset then."),
    number("again", "Records that come again."),
    number("passed", "Records that are passed over."),
    truth("exact", "Whether these are counted; else they are upper bounds, shown as <=."),
    truth("clamped", "Whether retention or the end put the target elsewhere than asked."),
    text("client_id", "Who holds it.", optional=True),
)

STREAM_MOVE: Fields = (
    text("stream", "Which."),
    text("from_client_id", "Who gives it back.", optional=True),
    text("to_client_id", "Who gets it."),
    text("from_borrower_id", "The member that gives it back.", optional=True),
    text("to_borrower_id", "The member that gets it."),
)

OPERATION: Fields = (
    number("number", "Its number, by which other commands know it."),
    text("operation_id", "The caller's own id: a command repeated with it changes nothing."),
    text("kind", "offsets.rewind for one."),
    text("subject", "The group, topic, client or operation that was changed."),
    text("state", "running, cancelling, done, cancelled or failed."),
    text("summary", "What it does, in a sentence."),
    text("reason", "Why, as its caller said.", optional=True),
    text("principal", "Who."),
    text("origin", "From where."),
    moment("applied_at", "When."),
    moment("ended_at", "When it ended.", optional=True),
    number("revision", "Of the subject, after it."),
    anything("change", "What was asked for, with times and offsets resolved.", optional=True),
    anything("before", "What was changed, as it was.", optional=True),
    anything("after", "What was changed, as it is.", optional=True),
    text("failure", "Why it failed.", optional=True),
    number("undoes", "The operation that it takes back.", optional=True),
    number("undone_by", "The operation that took it back.", optional=True),
    truth("undoable", "Whether an operation could take it back."),
    text("not_undoable_because", "Why none could.", optional=True),
    number("streams_done", "Streams that are done."),
    number("streams_waiting", "Streams that are not."),
    items("streams", "OperatedStream", "Its streams; of a single one only."),
    texts("output", "What a task said; where one was run.", absent=True),
)

OPERATED_STREAM: Fields = (
    text("stream", "Which."),
    truth("done", "Whether it is done."),
    number("floor_before", "The first unacknowledged offset before.", optional=True),
    number("floor_after", "The first unacknowledged offset after.", optional=True),
    text("client_id", "Who is waited for.", optional=True),
)

REMOVAL: Fields = (
    text("name", "What was to go."),
    truth("removed", "Whether it is gone by this command."),
    number("operation", "The operation that removed it.", optional=True),
)
