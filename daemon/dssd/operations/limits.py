"""Every bound of operations, with its unit last and its reason."""

OPERATIONS_KEPT_MS = 90 * 24 * 3_600 * 1_000
"""Who looks for what was changed, or wants it back, looks back a quarter at most."""

OPERATIONS_KEPT_MAX = 10_000
"""Their heads are held in memory, some 20 MB at most. Beyond it the oldest that ended go early,
those that changed nothing first: a script that finds nothing to do each minute takes nobody's undo
away."""

OPERATIONS_SURPLUS_MAX = 100
"""How many more there may be until some are removed at once: looking through all takes 10 ms."""

OPERATION_DETAILS_BYTES_MAX = 16_000_000
"""What was asked and changed, as JSON, of ended operations in memory: a move of 10,000 cursors has
some 1.4 MB. The oldest beyond it are read from the store when somebody looks at them."""

OPERATIONS_READ_ROWS = 16
"""In one read at a start: a row may have megabytes."""

OPERATIONS_TRIM_EVERY_S = 3_600.0
"""How often operations are looked through for old ones."""

OPERATIONS_LISTED_MAX = 500
"""In one answer; a caller asks for older ones behind it."""

UNDO_LOOK_S = 2.0
"""How long one answer looks whether each of its operations can be taken back: each is planned for
it, 5 ms where its group reads 100 streams. What is beyond it says that it was not looked at."""

DETAIL_LISTED_BYTES_MAX = 2_000
"""Of a change, and of what was before and after it, in a listing: so a page of 500 stays below the
4 MB of a message."""

OPERATION_WATCHES_MAX = 200
"""Calls that wait for an operation; a tool needs one."""

OPERATION_WATCH_REST_S = 0.05
"""Between two answers of one such call: many streams that are done together are one answer."""

REASON_BYTES_MAX = 1_000
"""A few sentences and a ticket."""

OPERATION_ID_BYTES_MAX = 100
"""A UUID has 36, a ticket with a host name some 60."""

STREAMS_MOVED_MAX = 10_000
"""Cursors that one operation moves: a leader begins them in one step, which took 55 us each, and a
plan of them fits into a message."""

MOVES_A_PLAN_MAX = 2_000
"""Streams that one rebalance moves: its row holds them, some 200 bytes each. Who wants more plans
again when these are done."""

EVICTION_GRACE_MS_MAX = 600_000
"""The longest that an operator may let an evicted member go on with what it holds: nobody else gets
these streams meanwhile."""

BANS_A_GROUP_MAX = 1_000
"""Clients that are kept out of a group at a time; a leader has them in memory."""

RECORDS_SKIPPED_MAX = 1_000
"""By hand, in one operation; who passes over more says to which offset."""

GROUPS_NAMED_MAX = 5
"""In the sentences of a plan, those that lose most; the rest is counted."""

HAND_SKIPS_LOOKED_AT = 200
"""Of the newest operations of a group that moved cursors, for what was skipped by hand: a plan
reads the moves of each, some 0.1 ms for a few streams."""

OFFSETS_NAMED_MAX = 5
"""Of records in a sentence of a plan; the rest is counted."""

MEMBERS_NAMED_MAX = 10
"""In a sentence of a plan; the plan has a list of all."""

TOPIC_SYNC_MS_MAX = 60_000
"""How long the edit of a topic to sync waits on a full disk for what the topic held before. Nothing
else can be done to the topic meanwhile but to remove it."""

PAUSE_MS_MAX = 366 * 24 * 3_600 * 1_000
"""How far ahead the end of a pause may lie; one that is to last longer has no end."""

PAUSE_END_RETRY_MS = 1_000
"""How long the end of a pause waits after it could not be applied: another operation runs on the
group, or the disk is full."""

CHOICE_RANGES_MAX = 10_000
"""Ranges of dead letters that one operation names: 160 KB in rows, and some hundred in a plan."""

CHOICE_BYTES_MAX = 256 << 20
"""What a plan reads to choose dead letters by error or key: a second or two. The same command does
the rest afterwards."""
