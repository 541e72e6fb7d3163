"""Fields of groups, and of who and what is in them."""

from dssctl.fields.describing import PAGE
from dssctl.fields.model import (
    Fields,
    items,
    moment,
    number,
    ranges,
    rate,
    size,
    span,
    text,
    truth,
)

_FATES = (
    number("acked", "Records that members acknowledged."),
    number("filtered", "Records that the group's filter left out."),
    number("lost", "Records that retention took before they were acknowledged."),
    number("damaged", "Records that were damaged and passed over."),
    number("moved", "Records that an operator passed over, by skip or seek."),
    number("retried", "Records that went to a retry queue or to the dead letters."),
)
_RATES = (
    rate("arrivals_1m", "Appended to the streams that it reads, over the last minute."),
    rate("arrivals_5m", "Appended to the streams that it reads, over the last five minutes."),
    rate("acks_1m", "Done with, over the last minute."),
    rate("acks_5m", "Done with, over the last five minutes."),
)

GROUP: Fields = (
    number("group_id", "Its number, never given again."),
    text("name", "Its name; unique together with the filter."),
    text("filter", "The subjects that it reads, with + for one level and # for all below."),
    text("kind", "shared, queue, or exclusive: of one session."),
    text("state", "active, idle (no members), rebalancing, paused, draining or stalled."),
    text("state_reason", "Why it is in that state.", optional=True),
    text("health", "healthy, attention or problem."),
    number("borrowers", "Members that are connected or expected back."),
    number("standby", "Members without a stream: there are more members than streams."),
    number("streams", "Streams that it reads."),
    number("lag", "Records that are not acknowledged yet."),
    truth("lag_exact", "Whether the lag is counted; else it is an upper bound, shown as <=."),
    moment("oldest_unacked_at", "When the oldest unacknowledged record came.", optional=True),
    number("leader_epoch", "How often a leader took the group over."),
    text("start", "Where it began when it was created."),
    span("ack_wait_ms", "A record that is not acknowledged for so long comes again."),
    text("protocol", "borrow or lease: how streams are lent to members."),
    text("on_damage", "pass over damaged records, or stall before them."),
    number("max_deliver", "A record that failed so often is a dead letter; 0: it comes for ever."),
    text("backoff", "How long a record rests after each failure; the last repeats.", optional=True),
    number("queue_records", "So many records may wait in the queues of one stream."),
    size("queue_bytes", "And so many bytes of them."),
    number("retrying", "Records that failed and wait for their next attempt."),
    number("dead", "Records among the dead letters; dssctl dlq ls shows them."),
    *_FATES,
    number("revision", "Rises with each operation; --if-revision compares it."),
    truth("paused", "Whether it hands out nothing because an operator said so."),
    moment("paused_until", "When the pause ends by itself.", optional=True),
    moment("created_at", "When it was created."),
    *_RATES,
    span(
        "drain_ms",
        "Until the lag is gone, as the last minute went; none where it does not shrink, "
        "or a record of it fails again and again.",
        optional=True,
        fades=True,
    ),
    moment("leader_since", "Since when it is led; none where nobody leads it.", optional=True),
    items("members", "Borrower", "Its members; of describe only.", absent=True),
    items("grants", "Grant", "Its streams; of describe only.", absent=True),
    items("stuck", "Stuck", "What does not move, and why; of describe only.", absent=True),
    *(each for each in PAGE if each.name != "health"),
)

BORROWER: Fields = (
    text("group", "NAME@FILTER of its group.", absent=True),
    text("borrower_id", "Its id; new with each subscription."),
    text("client_id", "The client it belongs to."),
    number("streams", "Streams that it holds."),
    truth("standby", "Whether it waits for a stream."),
    moment("connected_at", "When it joined."),
    number("lag", "Unacknowledged records of the streams that it holds."),
    rate("acks_1m", "Acknowledged by it, over the last minute."),
    rate("acks_5m", "Acknowledged by it, over the last five minutes."),
    items("grants", "Grant", "The streams that it holds; of describe only.", absent=True),
)

GRANT: Fields = (
    text("group", "NAME of its group."),
    text("filter", "The filter of its group."),
    text("stream", "TOPIC/STORAGE/PARTITION, orders/0/3 for one."),
    text("state", "free, granting, granted or revoking."),
    text("client_id", "Who holds it.", optional=True),
    number("grant_epoch", "Rises with each holder; an ack of an older one does not count."),
    number("floor", "The first offset that is not acknowledged."),
    ranges("acked_ranges", "Acknowledged above the floor."),
    number("acked_above_floor", "So many are acknowledged above the floor."),
    number("end", "The offset after the last record."),
    number("lag", "Records that are not acknowledged yet."),
    truth("lag_exact", "Whether the lag is counted; else it is an upper bound, shown as <=."),
    moment("oldest_unacked_at", "When the oldest unacknowledged record came.", optional=True),
    span("state_age_ms", "For so long it has been in its state.", fades=True),
    text("stall", "Why it does not move, though it should.", optional=True),
    *_FATES,
    text("pinned_to", "The member that an operator gave it to.", optional=True),
    *_RATES,
    ranges("damaged_ranges", "Damaged and passed over."),
)

LEADER: Fields = (
    text("group", "NAME@FILTER of the group."),
    text("state", "leading, or none."),
    number("epoch", "How often a leader took the group over."),
    moment("since", "Since when it leads.", optional=True),
    number("members", "Members of the group."),
    number("streams", "Streams that the group reads."),
    text("protocol", "borrow or lease: how streams are lent to members."),
    text("daemon", "The run of the daemon that it is in.", optional=True),
    number("pid", "The process of that daemon.", optional=True),
    items("grants", "LedStream", "What it lends; of describe only.", absent=True),
)

LED_STREAM: Fields = (
    text("stream", "Which."),
    text("state", "free, granting, granted or revoking."),
    number("grant_epoch", "Rises with each holder."),
    moment("since", "Since when it is in that state.", optional=True),
    text("client_id", "Who holds it.", optional=True),
)

_REASON = (
    text("code", "The reason in one word."),
    text("sentence", "The reason in a sentence."),
    text("command", "What to do next.", optional=True),
    text("client_id", "Who is concerned.", optional=True),
    moment("since", "Since when.", optional=True),
    moment("until", "Until when at most.", optional=True),
    number("attempt", "How often it was handed out.", optional=True),
    number("blocked_by", "The offset that has to be done first.", optional=True),
)

RECORD_STANDING: Fields = (
    text("stream", "Where the record is."),
    number("offset", "Its offset there."),
    *_REASON,
    text("subject", "What it is about.", optional=True),
    text("key", "Its ordering key.", optional=True),
    moment("appended_at", "When it came.", optional=True),
    number("floor", "The first offset of the stream that is not acknowledged."),
    number("end", "The offset after the stream's last record."),
    number("ahead", "Unacknowledged records before it."),
)

GROUP_STANDING: Fields = (text("group", "NAME@FILTER of the group."), *_REASON)

STUCK: Fields = (
    text("group", "NAME@FILTER of the group."),
    text("stream", "The stream, where one is concerned.", optional=True),
    *_REASON,
    number("lag", "Records that are not acknowledged."),
    span("still_ms", "Nothing was acknowledged for so long.", optional=True, fades=True),
    text("level", "problem, or attention where an operator paused it."),
)

STREAM_SUMS: Fields = (
    text("stream", "Which."),
    truth("adds_up", "Whether the counts agree."),
    number("appended", "Appended since the group began there."),
    *_FATES,
    number("out", "Out to members now."),
    number("waiting", "Not handed out yet."),
    number("gone", "Offsets that no record has: gaps of a topic of durability os."),
    number("uncounted", "Offsets whose fate was not counted when this version began to count."),
    text("problem", "What does not add up.", optional=True),
    number("began", "The offset at which counting began."),
    number("end", "The offset after the last record."),
    number("found_matching", "Found by --scan: records of the filter.", optional=True),
    number("found_filtered", "Found by --scan: records that the filter leaves out.", optional=True),
    number("found_missing", "Found by --scan: offsets without a record.", optional=True),
)

STREAM_OFFSETS: Fields = (
    text("topic", "Its topic."),
    number("ordinal", "Of the storage topic."),
    number("partition", "Of the stream in it."),
    number("partitions", "So many the storage topic has."),
    number("floor", "The first offset that is not acknowledged."),
    ranges("acked", "Acknowledged above the floor."),
    number("end", "The offset after the last record."),
)

GROUP_OFFSETS: Fields = (
    text("group", "NAME@FILTER of the group."),
    moment("exported_at", "When."),
    items("streams", "StreamOffsets", "Where it stands, stream by stream."),
)
