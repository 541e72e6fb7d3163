"""``dssctl topics``: the named logs."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from dss_core.counted import counted
from dss_core.errors import TopicNotFound
from dss_core.times import parse_span_ms, text_of_span
from dssctl.arguments import IfExists, TopicName
from dssctl.changing import Changing, Removing, Writing, carry_out, show_operation
from dssctl.confirm import confirm_name_if_protected
from dssctl.connection import ask
from dssctl.creation import note_differences, show_created
from dssctl.items import item_of
from dssctl.listing import list_items, listing
from dssctl.nouns.topics import CREATED_KIND, STORAGE_TOPIC_KIND, STREAM_KIND, TOPIC_KIND
from dssctl.output import Instant, Item, Section, note
from dssctl.page import page
from dssctl.quantities import size_bytes
from dssctl.removal import accepting, showing_removal
from dssctl.selection import ListRules, Named, Wanted
from dssctl.settings import Format, Settings
from dssctl.tree import noun, settings_of, showing

if TYPE_CHECKING:
    from dss_client import Client, Operation, StorageTopic, Topic

app = noun("topics")

Partitions = Annotated[int, typer.Option(min=1, help="How many streams the new one has.")]


@app.command("ls", cls=listing(TOPIC_KIND, ListRules(remembered="topics", named=Named("[TOPIC]"))))
def list_topics(context: typer.Context) -> None:
    """List all topics."""

    async def topics(client: "Client", _wanted: Wanted) -> list[Item]:
        return [
            {**_item(summary.topic), "records": summary.records, "bytes": summary.bytes}
            for summary in await client.topics.list()
        ]

    list_items(context, topics)


@app.command(cls=showing(CREATED_KIND, command=Writing))
def create(
    context: typer.Context,
    name: TopicName,
    partitions: Annotated[int, typer.Option(min=1, help="How many streams it has.")] = 1,
    factor: Annotated[
        int | None, typer.Option(min=1, help="K of the block router; divides the partitions.")
    ] = None,
    router: Annotated[
        str, typer.Option(help="block, or range for topics that will grow much.")
    ] = "block",
    pattern: Annotated[
        list[str] | None, typer.Option(help="Subjects that it owns; TOPIC/# where absent.")
    ] = None,
    durability: Annotated[
        str, typer.Option(help="sync: acknowledged after fdatasync. os: lost with the machine.")
    ] = "sync",
    retention: Annotated[
        str | None, typer.Option(metavar="SPAN", help="Keep records this long, such as 7d.")
    ] = None,
    retention_size: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Keep at most this much, such as 10G.")
    ] = None,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="Accept one that exists, as it is.")
    ] = False,
) -> None:
    """Create a topic."""
    settings = settings_of(context)
    confirm_name_if_protected(settings, f"Creating the topic {name}", name)
    retention_ms = parse_span_ms(retention) if retention else None
    retention_bytes = size_bytes(retention_size) if retention_size else None
    topic = ask(
        settings,
        lambda client: client.topics.create(
            name,
            partitions=partitions,
            factor=factor,
            router=router,
            patterns=pattern or (),
            durability=durability,
            retention_ms=retention_ms,
            retention_bytes=retention_bytes,
            if_not_exists=if_not_exists,
        ),
    )
    settled = {
        "partitions": (partitions, topic.partitions),
        "factor": (factor, topic.producing.factor),
        "router": (router, topic.router),
        "durability": (durability, topic.durability),
        "retention": (_span(retention_ms), _span(topic.retention_ms)),
        "retention_size": (retention_bytes, topic.retention_bytes),
        "pattern": (_listed(pattern), _listed(topic.patterns)),
    }
    if if_not_exists:
        note_differences(context, settings, f"The topic {name}", settled)
    told = f"dssctl produce {name}, and a line of text for each record"
    show_created(settings, CREATED_KIND, _item(topic), _sentence(topic), told)


@app.command(cls=page(TOPIC_KIND))
def describe(context: typer.Context, name: TopicName) -> None:
    """Show whether a topic is healthy, who reads it, and what it keeps."""
    from dssctl.pages.topic_page import show_topic, topic_look

    settings = settings_of(context)
    look = ask(settings, lambda client: topic_look(client, name))
    topic = look.topic
    storage_topics = [_storage_topic(topic, storage) for storage in topic.storage_topics]
    item = {
        **_item(topic),
        "records": sum(int(str(each["records"])) for each in storage_topics),
        "bytes": sum(int(str(each["bytes"])) for each in storage_topics),
    }
    shown = [storage for storage in topic.storage_topics if _is_shown(settings, topic, storage)]
    lists = [
        (Section("storage_topics", STORAGE_TOPIC_KIND), storage_topics),
        (
            Section("streams", STREAM_KIND),
            [stream for storage in shown for stream in _streams(topic, storage)],
        ),
    ]
    show_topic(settings, TOPIC_KIND, item, lists, look)


@app.command(cls=Changing)
def edit(
    context: typer.Context,
    name: TopicName,
    retention: Annotated[
        str | None, typer.Option(metavar="SPAN", help="Keep records this long, such as 7d.")
    ] = None,
    no_retention: Annotated[
        bool, typer.Option("--no-retention", help="Keep records of any age.")
    ] = False,
    retention_size: Annotated[
        str | None,
        typer.Option(
            "--retention-size",
            "--retention-bytes",
            metavar="SIZE",
            help="Keep at most this much, such as 10G.",
        ),
    ] = None,
    no_retention_size: Annotated[
        bool,
        typer.Option("--no-retention-size", "--no-retention-bytes", help="Keep any amount."),
    ] = False,
    durability: Annotated[
        str | None,
        typer.Option(help="sync: acknowledged after fdatasync. os: lost with the machine."),
    ] = None,
) -> None:
    """Change settings of a topic; what is not named stays as it is."""
    from dss_client.changes import EditTopic

    edited = EditTopic(
        topic=name,
        retention_ms=None if retention is None else parse_span_ms(retention),
        retention_bytes=None if retention_size is None else size_bytes(retention_size),
        no_retention_ms=no_retention,
        no_retention_bytes=no_retention_size,
        durability=durability,
    )
    if edited == EditTopic(name):
        raise typer.BadParameter("name what to change; see --help.", ctx=context)
    if (retention and no_retention) or (retention_size and no_retention_size):
        raise typer.BadParameter("a bound is set, or it is left out; not both.", ctx=context)
    carry_out(context, edited)


@app.command(cls=Changing)
def grow(
    context: typer.Context,
    name: TopicName,
    partitions: Partitions,
    with_shards: Annotated[
        bool,
        typer.Option(
            "--with-shards", help="Give its ordered groups the numbers of shards that fit then."
        ),
    ] = False,
) -> None:
    """Give a topic more partitions, or fewer, while it is used: add-storage and switch in one."""
    from dss_client.changes import GrowTopic

    carry_out(context, GrowTopic(name, partitions, with_shards), _show_growth)


def _show_growth(settings: Settings, operation: "Operation") -> None:
    """Print it as any operation, and how to take back the changes of shard counts that went with
    it."""
    show_operation(settings, operation)
    numbers = json.loads(operation.after or "{}").get("operations", ())
    for number in numbers if operation.ended else ():
        note(settings, f"undo a count of shards that went with it: dssctl ops undo {number}")


@app.command("add-storage", cls=Changing)
def add_storage(context: typer.Context, name: TopicName, partitions: Partitions) -> None:
    """Add a storage topic, which takes records from the next switch on."""
    from dss_client.changes import AddStorageTopic

    carry_out(context, AddStorageTopic(name, partitions))


@app.command(cls=Changing)
def switch(context: typer.Context, name: TopicName) -> None:
    """Switch to the next storage topic: it takes new records. This cannot be undone."""
    from dss_client.changes import SwitchTopic

    carry_out(context, SwitchTopic(name))


@app.command("rm", cls=Removing)
def remove(
    context: typer.Context,
    name: TopicName,
    force: Annotated[
        bool, typer.Option("--force", help="Remove it even if groups read it.")
    ] = False,
    if_exists: IfExists = False,
) -> None:
    """Remove a topic and every record in it. This cannot be undone."""
    from dss_client.changes import RemoveTopic

    with accepting(context, TopicNotFound, name, if_exists=if_exists):
        carry_out(context, RemoveTopic(name, force), showing_removal(name))


def _span(span_ms: int | None) -> str | None:
    return None if span_ms is None else text_of_span(span_ms)


def _listed(patterns: Sequence[str] | None) -> str:
    return ",".join(sorted(patterns or ()))


def _item(topic: "Topic") -> Item:
    return item_of("Topic", topic, storage=len(topic.storage_topics))


def _sentence(topic: "Topic") -> str:
    kept = "for ever"
    if topic.retention_ms is not None:
        kept = f"for {text_of_span(topic.retention_ms)}"
    if topic.retention_bytes is not None:
        kept += f", {topic.retention_bytes:,} bytes at most"
    return (
        f"The topic {topic.name} is there: {counted(topic.partitions, 'partition')}, durability "
        f"{topic.durability}, records kept {kept}."
    )


def _is_shown(settings: Settings, topic: "Topic", storage: "StorageTopic") -> bool:
    """Whether a stream is shown: on a page only those that are written to, unless it may be
    wide."""
    return settings.format is not Format.TABLE or storage is topic.producing


def _storage_topic(topic: "Topic", storage: "StorageTopic") -> Item:
    begins_us = storage.begins_us or (0 if storage.ordinal else topic.created_at_ms * 1_000)
    return item_of(
        "StorageTopic",
        storage,
        storage=f"{topic.name}/{storage.ordinal}",
        base=storage.partitions // storage.factor,
        state=topic.state_of(storage),
        began_at=Instant(begins_us) if begins_us else None,
        records=sum(bounds.records for bounds in storage.streams),
        bytes=sum(bounds.bytes for bounds in storage.streams),
    )


def _streams(topic: "Topic", storage: "StorageTopic") -> list[Item]:
    name, sealed = f"{topic.name}/{storage.ordinal}", storage.sealed
    return [
        item_of("Stream", bounds, stream=f"{name}/{bounds.partition}", sealed=sealed)
        for bounds in storage.streams
    ]
