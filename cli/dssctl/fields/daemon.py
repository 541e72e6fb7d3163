"""Fields of the daemon, of sessions, and of what happened."""

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
    text("certificate", "The file of what it serves TLS with.", optional=True),
    moment("certificate_ends", "When that ends.", optional=True),
    text("certificate_problem", "Why what lies in that file is not served.", optional=True),
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
    text("incarnation", "Of its data: a restart keeps it, a restore from a backup does not."),
    number("restores", "How often its data was restored from a backup."),
    moment("backup_at", "When the last backup that it knows of was taken.", optional=True),
    number("principals_suspended", "By a restore, until they are confirmed."),
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

WAITED: Fields = (
    text("subject", "What was waited for."),
    texts("conditions", "What was to hold of it."),
    span("waited_ms", "How long that took."),
    anything("now", "How it is.", optional=True),
)

CHANGE: Fields = (
    moment("at", "When this program heard of it."),
    text("topic", "Which kind of thing: groups, members, grants, lags, events, ...", optional=True),
    text("change", "is (how it is now), gone, or anew (all before is no more)."),
    text("group", "NAME@FILTER of the group.", optional=True),
    text("name", "Of the thing in the group.", optional=True),
    anything("value", "The thing, as the command that lists it prints it.", optional=True),
)
