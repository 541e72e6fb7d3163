"""Topics, streams and records: what each field means, and how a table shows it."""

from dss_core.times import text_of_span
from dssctl.fields.describing import PAGE
from dssctl.fields.model import (
    Field,
    Fields,
    Type,
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
from dssctl.output import Column, Item, Kind
from dssctl.output.model import size as size_cell

TOPIC: Fields = (
    number("topic_id", "Its number, never reused."),
    text("name", "Its name."),
    number("partitions", "Streams of the storage topic that producers write to."),
    texts("patterns", "The subjects that it owns."),
    text("router", "block or range: which partition a key goes to."),
    text("durability", "sync: acknowledged after fdatasync; os: lost with the machine."),
    number("topic_epoch", "Rises when producers have to describe it again."),
    number("produce_ordinal", "The storage topic that producers write to."),
    number("storage", "Storage topics that it has."),
    span("retention_ms", "How long records are kept.", optional=True),
    size("retention_bytes", "How many bytes are kept.", optional=True),
    moment("created_at", "When it was created."),
    number("revision", "Rises with each change; a new topic begins above any that had its name."),
    number("records", "Records that it holds.", absent=True),
    size("bytes", "Their size on disk.", absent=True),
    items("streams", "Stream", "Streams of all storage topics; of describe only.", absent=True),
    items(
        "storage_topics",
        "StorageTopic",
        "Its storage topics, the oldest first; of describe only.",
        absent=True,
    ),
    items("groups", "Reader", "Groups that read it; of describe only.", absent=True),
    *PAGE,
)

STORAGE_TOPIC: Fields = (
    text("storage", "TOPIC/STORAGE, for example orders/0."),
    number("partitions", "Its streams."),
    number("factor", "K: neighbouring partitions that one block of keys is spread over."),
    number("base", "B: blocks of keys; partitions divided by K."),
    text(
        "state", "sealed: takes no more; producing: takes what is produced; waiting: for a switch."
    ),
    moment("began_at", "When it took over, or its topic was created.", optional=True),
    number("records", "Records that it holds."),
    size("bytes", "Their size on disk."),
)

READER: Fields = (
    text("group", "NAME@FILTER of the group."),
    text("state", "The group's state."),
    number("members", "The group's members."),
    number("lag", "The group's lag."),
    moment("oldest_unacked_at", "When its oldest unacknowledged record came.", optional=True),
)

STREAM: Fields = (
    text("stream", "TOPIC/STORAGE/PARTITION, for example orders/0/3."),
    number("start", "The first offset that is kept."),
    number("end", "The offset after the last record."),
    number("records", "Records that it holds."),
    size("bytes", "Their size on disk."),
    truth("sealed", "Whether it takes no more records."),
)


def _retention(item: Item, _now_us: int) -> str:
    age_ms = item["retention_ms"]
    return text_of_span(age_ms) if isinstance(age_ms, int) else "-"


_DEFINITION = (
    Column("name", "NAME"),
    Column("partitions", "PARTITIONS", right=True),
)
_SETTINGS = (
    Column("durability", "DURABILITY"),
    Column("retention_ms", "RETENTION", cell=_retention),
    Column("created_at", "AGE"),
    Column("patterns", "PATTERNS", wide=True),
    Column("router", "ROUTER", wide=True),
    Column("storage", "STORAGE-TOPICS", right=True, wide=True),
    Column("topic_epoch", "EPOCH", right=True, wide=True),
    Column("retention_bytes", "RETENTION-BYTES", cell=size_cell("retention_bytes"), wide=True),
    Column("revision", "REVISION", right=True, wide=True),
)
_KEPT = (
    Column("records", "RECORDS", right=True),
    Column("bytes", "SIZE", right=True, cell=size_cell("bytes")),
)

TOPIC_KIND = Kind("Topic", (*_DEFINITION, *_KEPT, *_SETTINGS), lambda item: str(item["name"]))
CREATED_KIND = Kind("Topic", (*_DEFINITION, *_SETTINGS), lambda item: str(item["name"]))
STORAGE_TOPIC_KIND = Kind(
    "StorageTopic",
    (
        Column("storage", "STORAGE"),
        Column("partitions", "PARTITIONS", right=True),
        Column("factor", "K", right=True),
        Column("base", "BASE", right=True),
        Column("state", "STATE", styles={"producing": "green"}),
        Column("began_at", "BEGAN", right=True),
        Column("records", "RECORDS", right=True),
        Column("bytes", "SIZE", right=True, cell=size_cell("bytes")),
    ),
    lambda item: str(item["storage"]),
)
STREAM_KIND = Kind(
    "Stream",
    (
        Column("stream", "STREAM"),
        Column("start", "START", right=True),
        Column("end", "END", right=True),
        Column("records", "RECORDS", right=True),
        Column("bytes", "SIZE", right=True, cell=size_cell("bytes")),
        Column("sealed", "SEALED"),
    ),
    lambda item: str(item["stream"]),
)


_PLACE: Fields = (
    text("stream", "Where it is."),
    number("offset", "Its offset there."),
    text("subject", "What it is about."),
    text("key", "Its ordering key, where it is text.", optional=True),
    text("key_base64", "Its ordering key, where it is no text.", absent=True),
    moment("timestamp", "When its producer made it."),
)
_HEADERS = Field("headers", Type.ITEMS, "Its headers, in their order.", "Header")

RECORD: Fields = (
    *_PLACE,
    _HEADERS,
    text("payload", "Its content, where it is text.", optional=True),
    text("payload_base64", "Its content, where it is no text.", absent=True),
    number("attempt", "How often it was handed out; in a group.", absent=True),
    truth("redelivered", "Whether somebody may have seen it before; in a group.", absent=True),
)

STORED_RECORD: Fields = (
    *_PLACE,
    moment("appended_at", "When the daemon appended it."),
    _HEADERS,
    anything("payload", "Its content: text, hexadecimal digits, or JSON itself.", optional=True),
    text("payload_base64", "Its content, where it is no text.", absent=True),
    number("payload_bytes", "How long its content is."),
    text("decoded_as", "text, json or hex."),
    items("groups", "GroupStanding", "Its state in each group; of get only.", absent=True),
    text("group", "The group of --group; this and the next fields are of find only.", absent=True),
    text("code", "Where it is for the group: dead, retrying, acked, skipped.", absent=True),
    text("client_id", "The client that has it, or had it last.", optional=True, absent=True),
    number("attempt", "Which attempt it is.", optional=True, absent=True),
    text("sentence", "Where it is, in words.", absent=True),
)

HEADER: Fields = (
    text("name", "Its name."),
    text("value", "Its value, where it is text.", optional=True),
    text("value_base64", "Its value, where it is no text.", absent=True),
)

PUBLISHED: Fields = (
    text("topic", "The topic that it went to."),
    number("records", "Number of stored records."),
    size("bytes", "Size of their payloads."),
)
