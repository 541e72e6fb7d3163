"""What is asked of groups: what each field means, and how a table shows it."""

from typing import TYPE_CHECKING

from dss_core.times import text_of_span
from dssctl.cells import REASON_STYLES
from dssctl.fields.model import Fields, items, moment, number, ranges, span, text, truth
from dssctl.items import item_of
from dssctl.nouns.groups import FATES
from dssctl.output import Column, Instant, Item, Kind

if TYPE_CHECKING:
    from dss_client import RecordStanding, StreamSums

_REASON = (
    text("code", "The reason in one word."),
    text("sentence", "The reason in a sentence."),
    text("command", "What to do next.", optional=True),
    text("client_id", "The client that it is about.", optional=True),
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
    text("stream", "The stream, if it is about one.", optional=True),
    *_REASON,
    number("lag", "Records that are not acknowledged."),
    span("still_ms", "How long nothing was acknowledged.", optional=True, fades=True),
    text("level", "problem, or attention where an operator paused it."),
)

STREAM_SUMS: Fields = (
    text("stream", "The stream."),
    truth("adds_up", "Whether the counts agree."),
    number("appended", "Appended since the group began there."),
    *FATES,
    number("out", "In flight at members now."),
    number("waiting", "Not handed out yet."),
    number("gone", "Offsets that no record has: gaps of a topic of durability os."),
    number("uncounted", "Offsets from before the daemon kept these counts."),
    text("problem", "What does not add up.", optional=True),
    number("began", "The offset at which counting began."),
    number("end", "The offset after the last record."),
    number("found_matching", "Found by --scan: records of the filter.", optional=True),
    number("found_filtered", "Found by --scan: records that the filter leaves out.", optional=True),
    number("found_missing", "Found by --scan: offsets without a record.", optional=True),
)

STREAM_OFFSETS: Fields = (
    text("topic", "Its topic."),
    number("ordinal", "The number of its storage topic."),
    number("partition", "The number of its partition."),
    number("partitions", "Partitions of the storage topic."),
    number("floor", "The first offset that is not acknowledged."),
    ranges("acked", "Acknowledged above the floor."),
    number("end", "The offset after the last record."),
)

GROUP_OFFSETS: Fields = (
    text("group", "NAME@FILTER of the group."),
    moment("exported_at", "When it was exported."),
    items("streams", "StreamOffsets", "The progress of each stream."),
)

STANDING_KIND = Kind(
    "RecordStanding",
    (
        Column("stream", "STREAM"),
        Column("offset", "OFFSET", right=True),
        Column("code", "WHY", styles=REASON_STYLES),
        Column("client_id", "CLIENT"),
        Column("attempt", "ATTEMPT", right=True),
        Column("sentence", "IN WORDS"),
        Column("since", "SINCE", right=True, wide=True),
        Column("until", "UNTIL", cell=lambda item, _now_us: _moment(item["until"]), wide=True),
        Column("ahead", "AHEAD", right=True, wide=True),
        Column("floor", "FLOOR", right=True, wide=True),
        Column("end", "END", right=True, wide=True),
        Column("blocked_by", "BLOCKED-BY", right=True, wide=True),
        Column("subject", "SUBJECT", wide=True),
        Column("key", "KEY", wide=True),
        Column("appended_at", "APPENDED", right=True, wide=True),
        Column("command", "NEXT", wide=True),
    ),
    lambda item: f"{item['stream']}:{item['offset']}",
)


STUCK_KIND = Kind(
    "Stuck",
    (
        Column("group", "GROUP"),
        Column("stream", "STREAM"),
        Column("code", "WHY", styles=REASON_STYLES),
        Column("lag", "LAG", right=True),
        Column("still_ms", "STILL-FOR", right=True, cell=lambda item, _now_us: _still(item)),
        Column("sentence", "IN WORDS"),
        Column("client_id", "CLIENT", wide=True),
        Column("attempt", "ATTEMPT", right=True, wide=True),
        Column("since", "SINCE", right=True, wide=True),
        Column("until", "UNTIL", cell=lambda item, _now_us: _moment(item["until"]), wide=True),
        Column("blocked_by", "BLOCKED-BY", right=True, wide=True),
        Column("command", "NEXT", wide=True),
    ),
    lambda item: str(item["stream"] or item["group"]),
)


VERIFIED_KIND = Kind(
    "StreamSums",
    (
        Column("stream", "STREAM"),
        Column("adds_up", "ADDS-UP", styles={"yes": "green", "no": "bold red"}),
        Column("appended", "APPENDED", right=True),
        Column("acked", "ACKED", right=True),
        Column("filtered", "FILTERED", right=True),
        Column("lost", "LOST", right=True),
        Column("damaged", "DAMAGED", right=True),
        Column("moved", "MOVED", right=True),
        Column("retried", "RETRIED", right=True),
        Column("out", "OUT", right=True),
        Column("waiting", "WAITING", right=True),
        Column("gone", "GONE", right=True),
        Column("problem", "PROBLEM"),
        Column("began", "BEGAN", right=True, wide=True),
        Column("end", "END", right=True, wide=True),
        Column("uncounted", "UNCOUNTED", right=True, wide=True),
        Column("found_matching", "FOUND-MATCHING", right=True, wide=True),
        Column("found_filtered", "FOUND-FILTERED", right=True, wide=True),
        Column("found_missing", "FOUND-MISSING", right=True, wide=True),
    ),
    lambda item: str(item["stream"]),
)


def standing_item(standing: "RecordStanding") -> Item:
    """Where a record stands, as the renderer takes it."""
    key = None if standing.key is None else standing.key.decode(errors="backslashreplace")
    return item_of("RecordStanding", standing, key=key)


def sums_item(sums: "StreamSums") -> Item:
    """What adds up, as the renderer takes it."""
    found = sums.scanned
    scanned = {
        "found_matching": found.matching if found else None,
        "found_filtered": found.filtered if found else None,
        "found_missing": found.missing if found else None,
    }
    return item_of("StreamSums", sums, adds_up=not sums.problem, **scanned)


def _still(item: Item) -> str:
    still_ms = item["still_ms"]
    return text_of_span(still_ms) if isinstance(still_ms, int) else "-"


def _moment(value: object) -> str:
    return value.rfc3339() if isinstance(value, Instant) else "-"
