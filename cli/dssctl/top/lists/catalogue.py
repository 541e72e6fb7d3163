"""Topics, their streams, and sessions."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from dss_core.times import text_of_span
from dssctl.output.escape import escaped
from dssctl.top.lists.listing import Column, Listing, Pen, Scene
from dssctl.top.model.places import Ordering, Place
from dssctl.top.paint import amounts

if TYPE_CHECKING:
    from dss_client import SessionSummary, StreamBounds, TopicSummary


def _retention(row: "TopicSummary") -> str:
    topic = row.topic
    age = "-" if topic.retention_ms is None else text_of_span(topic.retention_ms)
    of_size = "" if topic.retention_bytes is None else f", {amounts.size(topic.retention_bytes)}"
    return age + of_size


def _topic_facts(row: "TopicSummary", pen: Pen) -> Sequence[tuple[str, str]]:
    topic = row.topic
    return [
        ("topic", escaped(topic.name)),
        ("owns", escaped(", ".join(topic.patterns))),
        ("partitions", f"{topic.partitions}, {topic.router} router"),
        ("storage topics", str(len(topic.storage_topics))),
        ("records", str(row.records)),
        ("size", amounts.size(row.bytes)),
        ("durability", topic.durability),
        ("retention", _retention(row)),
        ("revision", str(topic.revision)),
        ("created", amounts.told_at(topic.created_at_ms, pen.now_ms)),
    ]


TOPICS: "Listing[TopicSummary]" = Listing(
    title="Topics",
    columns=(
        Column("name", "TOPIC", 18, lambda row: row.topic.name, grows=True, rises=True),
        Column("partitions", "PART", 5, lambda row: row.topic.partitions,
            lambda row, _pen: str(row.topic.partitions), right=True),
        Column("records", "RECORDS", 8, lambda row: row.records, right=True),
        Column("size", "SIZE", 8, lambda row: row.bytes, lambda row, _pen: amounts.size(row.bytes),
            right=True),
        Column("durability", "DURABILITY", 10, lambda row: row.topic.durability,
            look=lambda row: "warn" if row.topic.durability != "sync" else "", rises=True),
        Column("retention", "RETENTION", 14, lambda row: row.topic.retention_ms,
            lambda row, _pen: _retention(row), rank=1),
        Column("patterns", "OWNS", 14, lambda row: ", ".join(row.topic.patterns),
            lambda row, _pen: escaped(",".join(row.topic.patterns)), rank=2, grows=True,
            rises=True),
        Column("age", "AGE", 6, lambda row: -row.topic.created_at_ms,
            lambda row, pen: amounts.age(row.topic.created_at_ms, pen.now_ms), right=True, rank=3),
    ),
    rows=lambda scene: scene.picture.topics,
    order=Ordering("name", descending=False),
    opens=lambda _place, key, _row: Place("topic", name=key),
    facts=_topic_facts,
    empty="no topic yet: dssctl topics create NAME",
)  # fmt: skip


class BoundsRow(NamedTuple):
    """What a stream of a topic keeps."""

    stream: str
    bounds: "StreamBounds"
    sealed: bool


def _bounds_rows(scene: Scene) -> Mapping[str, BoundsRow]:
    topic = scene.answer.topic if scene.answer else None
    if topic is None:
        return {}
    rows = (
        BoundsRow(f"{topic.name}/{storage.ordinal}/{bounds.partition}", bounds, storage.sealed)
        for storage in topic.storage_topics
        for bounds in storage.streams
    )
    return {row.stream: row for row in rows}


TOPIC_STREAMS: Listing[BoundsRow] = Listing(
    title="Streams",
    columns=(
        Column("stream", "STREAM", 16, lambda row: row.stream, grows=True, rises=True),
        Column("start", "START", 10, lambda row: row.bounds.start,
            lambda row, _pen: str(row.bounds.start), right=True),
        Column("end", "END", 10, lambda row: row.bounds.end, lambda row, _pen: str(row.bounds.end),
            right=True),
        Column("records", "RECORDS", 10, lambda row: row.bounds.records, right=True),
        Column("size", "SIZE", 8, lambda row: row.bounds.bytes,
            lambda row, _pen: amounts.size(row.bounds.bytes), right=True),
        Column("sealed", "SEALED", 6, lambda row: "yes" if row.sealed else "no", rank=1,
            rises=True),
    ),
    rows=_bounds_rows,
    order=Ordering("records"),
    opens=lambda _place, key, _row: Place("stream", stream=key),
    empty="no stream",
)  # fmt: skip


def _expiry(row: "SessionSummary") -> str:
    return text_of_span(row.expiry_s * 1_000) if row.expiry_s else "at once"


def _session_facts(row: "SessionSummary", pen: Pen) -> Sequence[tuple[str, str]]:
    return [
        ("client", escaped(row.client_id)),
        ("state", f"{row.state} for {amounts.age(row.since_ms, pen.now_ms)}"),
        ("subscriptions", f"{row.subscriptions}, {row.private_subscriptions} of them private"),
        ("kept without connection", _expiry(row)),
        ("principal", escaped(row.principal)),
        ("from", escaped(row.peer) or "-"),
    ]


SESSIONS: "Listing[SessionSummary]" = Listing(
    title="Sessions",
    columns=(
        Column("client", "CLIENT", 20, lambda row: row.client_id, grows=True, rises=True),
        Column("state", "STATE", 9, lambda row: row.state,
            look=lambda row: "good" if row.state == "connected" else "warn", rises=True),
        Column("since", "SINCE", 7, lambda row: -row.since_ms,
            lambda row, pen: amounts.age(row.since_ms, pen.now_ms), right=True),
        Column("subscriptions", "SUBS", 5, lambda row: row.subscriptions,
            lambda row, _pen: str(row.subscriptions), right=True),
        Column("private", "PRIVATE", 7, lambda row: row.private_subscriptions,
            lambda row, _pen: str(row.private_subscriptions), right=True, rank=3),
        Column("expiry", "KEPT", 7, lambda row: row.expiry_s, lambda row, _pen: _expiry(row),
            right=True, rank=1),
        Column("principal", "PRINCIPAL", 12, lambda row: row.principal, rank=2, rises=True),
        Column("peer", "FROM", 16, lambda row: row.peer, grows=True, rank=2, rises=True),
    ),
    rows=lambda scene: scene.picture.items.sessions,
    order=Ordering("client", descending=False),
    opens=lambda _place, key, _row: Place("session", name=key),
    fault=lambda row: row.state != "connected",
    facts=_session_facts,
    empty="no client has a session",
)  # fmt: skip
