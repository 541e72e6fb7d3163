"""The page of a topic."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dss_core.counted import counted
from dss_core.filters import TopicFilter
from dss_core.times import text_of_span
from dssctl.items import item_of
from dssctl.limits import PAGE_EVENTS, PAGE_OPERATIONS
from dssctl.output import Column, Item, Kind, Section
from dssctl.output.model import size
from dssctl.pages.group_page import name_of
from dssctl.pages.verdict import (
    EVENT_LINES,
    HEALTH,
    OPERATION_LINES,
    VERDICT,
    Verdict,
    event_lines,
    named,
    operation_lines,
    show_page,
    worst_of,
)
from dssctl.settings import Settings

if TYPE_CHECKING:
    from dss_client import Client, Event, Group, Operation, Topic
    from dss_client import Verdict as DaemonVerdict


@dataclass(frozen=True, slots=True)
class TopicLook:
    """All that the page is made of."""

    topic: "Topic"
    groups: "tuple[Group, ...]"
    """Those that read it, the furthest behind first."""
    events: "tuple[Event, ...]"
    operations: "tuple[Operation, ...]"
    found: "tuple[DaemonVerdict, ...]" = ()
    """What the daemon finds of it."""


async def topic_look(client: "Client", name: str) -> TopicLook:
    """Ask for it, at once.

    Raises:
        TopicNotFound: there is none.
    """
    topic = await client.topics.describe(name)
    groups, events, operations, found = await asyncio.gather(
        client.groups.list(sort="lag"),
        client.events.list(subject=f"{name}/", severity="warning", latest=PAGE_EVENTS),
        client.operations.list(subject=name, latest=PAGE_OPERATIONS),
        client.daemon.findings(topic=name),
    )
    patterns = [TopicFilter.parse(pattern) for pattern in topic.patterns]
    readers = tuple(
        group
        for group in groups
        if any(TopicFilter.parse(group.filter).overlaps(pattern) for pattern in patterns)
    )
    return TopicLook(topic, readers, events.events, operations, found)


def topic_verdict(look: TopicLook) -> Verdict:
    """How the topic is, by the worst that the daemon finds."""
    return worst_of(look.found) or _read_by(look, look.topic.name)


def _read_by(look: TopicLook, name: str) -> Verdict:
    """Of a topic that nothing is wrong with."""
    peek = f"dssctl records peek {name}"
    if not look.groups:
        return Verdict("healthy", "No group reads it.", (peek,))
    worst = look.groups[0]
    reads = "reads" if len(look.groups) == 1 else "read"
    readers = f"{counted(len(look.groups), 'group')} {reads} it"
    if not worst.lag:
        return Verdict("healthy", f"{readers}, and none is behind.", (peek,))
    behind = f"{name_of(worst)} is furthest behind, with {counted(worst.lag, 'record')}"
    describe = f"dssctl groups describe {named(name_of(worst))}"
    return Verdict("healthy", f"{readers}; {behind}.", (describe,))


READER_KIND = Kind(
    "Reader",
    (
        Column("group", "GROUP"),
        Column("state", "STATE", styles={"active": "green", "stalled": "bold red"}),
        Column("members", "MEMBERS", right=True),
        Column("lag", "LAG", right=True),
        Column("oldest_unacked_at", "OLDEST", right=True),
    ),
    lambda item: str(item["group"]),
)


def _cell_kept(item: Item, _now_us: int) -> str:
    return f"{counted(int(str(item['records'])), 'record')}, {size('bytes')(item, 0)}"


def _cell_retention(item: Item, _now_us: int) -> str:
    span_ms, size_bytes = item["retention_ms"], item["retention_bytes"]
    bounds = [
        text_of_span(span_ms) if isinstance(span_ms, int) else "",
        size("retention_bytes")(item, 0) if size_bytes is not None else "",
    ]
    return " and ".join(filter(None, bounds)) or "none: all is kept"


def _cell_routing(item: Item, _now_us: int) -> str:
    streams = counted(int(str(item["partitions"])), "partition")
    return f"{streams}, router {item['router']}, durability {item['durability']}"


TOPIC_PAGE_KIND = Kind(
    "Topic",
    (
        HEALTH,
        VERDICT,
        Column("name", "TOPIC"),
        Column("patterns", "PATTERNS"),
        Column("records", "KEPT", cell=_cell_kept),
        Column("retention_ms", "RETENTION", cell=_cell_retention),
        Column("partitions", "SETTINGS", cell=_cell_routing),
        Column("revision", "REVISION"),
        Column("created_at", "AGE"),
    ),
    lambda item: str(item["name"]),
)


def show_topic(
    settings: Settings,
    kind: Kind,
    facts: Item,
    lists: Sequence[tuple[Section, list[Item]]],
    look: TopicLook,
) -> None:
    """Print the page; `kind`, `facts` and `lists` are those of the topic's own command."""
    item = {
        **topic_verdict(look).fields,
        **facts,
        "groups": [
            item_of("Reader", each, group=name_of(each), members=each.borrowers)
            for each in look.groups
        ],
        **{section.field: rows for section, rows in lists},
        "operations": operation_lines(look.operations),
        "events": event_lines(look.events),
    }
    sections = [
        Section("groups", READER_KIND),
        *(section for section, _ in lists),
        Section("operations", OPERATION_LINES),
        Section("events", EVENT_LINES),
        Section("next"),
    ]
    show_page(settings, kind, TOPIC_PAGE_KIND, item, sections)
