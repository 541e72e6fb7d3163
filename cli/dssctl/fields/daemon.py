"""Fields of the daemon, of sessions, and of what happened."""

from dssctl.fields.describing import PAGE
from dssctl.fields.model import (
    Fields,
    anything,
    items,
    moment,
    number,
    size,
    span,
    text,
    texts,
    truth,
)

STATUS: Fields = (
    text("state", "serving, read-only (the disk is full) or stopping."),
    text("state_reason", "Why.", optional=True),
    text("version", "Of the daemon."),
    number("pid", "Of its process."),
    moment("started_at", "Since when it runs."),
    text("before", "How the daemon before ended: stopped, killed, power-lost, crashed, unknown."),
    moment("before_ended_at", "When that was, where it could say so.", optional=True),
    text("before_reason", "Why it crashed.", optional=True),
    text("data_dir", "Where its data is."),
    texts("listening", "Its addresses."),
    text("operators_socket", "Where operators are served when others are not.", optional=True),
    number("topics", "Topics."),
    number("streams", "Streams of all topics."),
    number("groups", "Groups."),
    number("sessions", "Sessions of connected clients."),
    number("sessions_waiting", "Sessions kept for clients that are away."),
    number("connections", "Open connections."),
    number("connections_max", "So many there may be."),
    number("calls", "Running calls."),
    number("calls_max", "So many there may be."),
    size("delivery_bytes", "Held for clients that have not taken it."),
    size("delivery_bytes_max", "So much may be.", absent=True),
    size("log_bytes", "The log on disk."),
    size("disk_free_bytes", "Free on that disk."),
    size("disk_size_bytes", "Of that disk."),
    number("open_files", "Descriptors of the process."),
    number("open_files_max", "So many may be; 0: any number."),
    number("producers", "That are remembered, one a partition."),
    number("producers_max", "From how many on most new ones are refused."),
    number("sessions_max", "Connected and kept ones together."),
    number("unread_records_gone", "Unread records that retention took, since the start."),
    number("errors_in_a_day", "Events of severity error, in the last 24 hours."),
    text("sqlite_version", "Of the library under the store."),
    text("boot_id", "Of this run of the daemon."),
    items("quarantined", "QuarantinedFile", "Files that a start set aside."),
    items("unread_losses", "UnreadLoss", "Who lost unread records to retention."),
    items("peers", "PeerHeld", "A few peers, those that hold most."),
)

LOOK: Fields = (
    *(field for field in STATUS if field.name != "groups"),
    items("groups", "Group", "Those that need a look first."),
    items("operations", "Operation", "The last ones."),
    items("events", "Event", "The last ones."),
)

QUARANTINED_FILE: Fields = (
    text("file", "Where it is now."),
    text("reason", "Why it was set aside."),
)

UNREAD_LOSS: Fields = (
    text("topic", "Of the records."),
    text("group", "Name of the group that had not acknowledged them."),
    text("filter", "Of that group."),
    number("records", "So many."),
    truth("exact", "Whether they are counted; else it is an upper bound, shown as <=."),
    moment("last_at", "When it happened last."),
)

PEER_HELD: Fields = (
    text("peer", "Who: a user of this machine, or an address."),
    number("connections", "Its open connections."),
    number("calls", "Its running calls."),
    number("sessions", "Its sessions."),
    size("delivery_bytes", "Held for it."),
)

SESSION: Fields = (
    text("client_id", "Of its client."),
    text("state", "connected or away."),
    moment("since", "Since when it is so."),
    number("subscriptions", "Subscriptions of groups."),
    number("private_subscriptions", "Subscriptions that nobody shares."),
    number("expiry_s", "Seconds that it is kept while its client is away."),
    text("peer", "Where its client is connected from.", optional=True),
    text("principal", "Who its client is."),
    items("memberships", "Membership", "Groups that it is in; of describe only.", absent=True),
    items("grants", "HeldStream", "Streams that it holds; of describe only.", absent=True),
    *PAGE,
)

MEMBERSHIP: Fields = (
    text("group", "NAME@FILTER of the group."),
    text("borrower_id", "As which member."),
    number("streams", "Streams that it holds there."),
    moment("connected_at", "Since when."),
)

HELD_STREAM: Fields = (
    text("stream", "Which."),
    text("group", "NAME@FILTER of the group."),
    text("state", "granting, granted or revoking."),
    number("grant_epoch", "Rises with each holder."),
    number("lag", "Records that are not acknowledged."),
    text("stall", "Why it does not move, though it should.", optional=True),
)

WAITED: Fields = (
    text("subject", "What was waited for."),
    texts("conditions", "What was to hold of it."),
    span("waited_ms", "How long that took."),
    anything("now", "How it is.", optional=True),
)

EVENT: Fields = (
    number("number", "Rises with each event."),
    moment("at", "When it happened first."),
    text("severity", "info, warning or error."),
    text("code", "What kind of thing happened: stream.stalled for one."),
    text("subject", "To which stream, group, topic or client."),
    text("sentence", "What happened."),
    anything("fields", "The facts, by name."),
    number("times", "How often, where several became one event."),
    moment("last_at", "When it happened last."),
)

CALL: Fields = (
    number("number", "Of its event."),
    moment("at", "When."),
    text("principal", "Who.", optional=True),
    text("outcome", "done, refused with a code, or unknown."),
    text("subject", "What it was about."),
    text("method", "Which call.", optional=True),
    text("program", "Of the caller, on this machine.", optional=True),
    text("pid", "Of the caller, on this machine.", optional=True),
    text("user", "Of the caller, as it says.", optional=True),
    text("origin", "Where the call came from.", optional=True),
    text("reason", "Why, as the caller said.", optional=True),
    text("sentence", "What was asked."),
)

CHANGE: Fields = (
    moment("at", "When this program heard of it."),
    text("topic", "Which kind of thing: groups, members, grants, lags, events, ...", optional=True),
    text("change", "is (how it is now), gone, or anew (all before is no more)."),
    text("group", "NAME@FILTER of the group.", optional=True),
    text("name", "Of the thing in the group.", optional=True),
    anything("value", "The thing, as the command that lists it prints it.", optional=True),
)
