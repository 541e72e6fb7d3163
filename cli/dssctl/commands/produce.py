"""``dssctl produce``: lines of the input become records."""

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from dss_core.counted import counted
from dss_core.errors import (
    BrokenInputLine,
    DssError,
    IllegalArgument,
    IllegalSubject,
    InputUnreadable,
    RecordTooLarge,
    SubjectOutsideTopic,
)
from dssctl.advice import outages_noted
from dssctl.changing import Writing
from dssctl.confirm import confirm_name_if_protected
from dssctl.connection import connected, require_daemon
from dssctl.input_lines import STANDARD_INPUT, lines, opened
from dssctl.input_records import Fields, InputFormat, Parser, format_of, json_parser, line_parser
from dssctl.output import Column, Item, Kind, note, show_one
from dssctl.progress import reading
from dssctl.settings import Settings
from dssctl.tree import settings_of, showing, verb_alone

if TYPE_CHECKING:
    from dss_client import Producer

app = verb_alone("produce")

PUBLISHED_KIND = Kind(
    "Published",
    (Column("topic", "TOPIC"), Column("records", "RECORDS"), Column("bytes", "BYTES")),
    lambda item: str(item["topic"]),
)

_FAULTS_OF_A_RECORD = (IllegalArgument, IllegalSubject, RecordTooLarge, SubjectOutsideTopic)
"""Errors about one record that the client raises, whatever the daemon's state."""


@app.command(cls=showing(PUBLISHED_KIND, command=Writing))
def produce(
    context: typer.Context,
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="Where to publish.")],
    path: Annotated[
        str, typer.Argument(metavar="FILE", help="What to read; '-' is standard input.")
    ] = STANDARD_INPUT,
    wanted: Annotated[
        InputFormat | None,
        typer.Option(
            "--input",
            help="What a line is: a payload, or an object, as where FILE ends in .json or .jsonl.",
        ),
    ] = None,
    key: Annotated[str | None, typer.Option(help="For records without a key of their own.")] = None,
    subject: Annotated[
        str | None, typer.Option(help="Subject of records without one of their own; else TOPIC.")
    ] = None,
    key_field: Annotated[
        str | None,
        typer.Option(metavar="FIELD", help="The key's field of a JSON line; else 'key', if there."),
    ] = None,
    subject_field: Annotated[
        str | None,
        typer.Option(
            metavar="FIELD", help="The subject's field of a JSON line; else 'subject', if there."
        ),
    ] = None,
    payload_field: Annotated[
        str | None,
        typer.Option(
            metavar="FIELD",
            help="The payload's field of a JSON line; else 'payload'; '.' is the line.",
        ),
    ] = None,
) -> None:
    """Publish each line as a record.

    Stops at a broken line and names it: everything before it is published, nothing after it.
    With --input jsonl, or a FILE of that name, it takes what `consume -o jsonl` prints.
    """
    settings = settings_of(context)
    input_format = wanted or format_of(path)
    fields = Fields(payload=payload_field, key=key_field, subject=subject_field)
    if input_format is InputFormat.LINES and fields != Fields():
        raise typer.BadParameter("fields are for --input jsonl; here a line is the payload.")
    fixed_key = key.encode() if key is not None else None
    parse = (
        line_parser(fixed_key, subject)
        if input_format is InputFormat.LINES
        else json_parser(fields, fixed_key, subject)
    )
    confirm_name_if_protected(settings, f"Publishing to {topic}", topic)
    publication = _Publication(settings, topic, parse)
    try:
        publication.run(path)
    except (DssError, KeyboardInterrupt):
        if told := publication.told():
            note(settings, told)
        raise
    item: Item = {"topic": topic, "records": publication.records, "bytes": publication.bytes}
    show_one(settings, PUBLISHED_KIND, item)


class _Publication:
    """One run over the input; counts the records handed over and those known to be stored."""

    def __init__(self, settings: Settings, topic: str, parse: Parser) -> None:
        self._settings = settings
        self._topic = topic
        self._parse = parse
        self._end: DssError | KeyboardInterrupt | None = None
        self._stored = False
        self.records = 0
        self.bytes = 0
        """Bytes of payload."""

    def told(self) -> str:
        """What happened to the records when something went wrong; empty if there were none."""
        if not self.records:
            return ""
        were = counted(self.records, "record was", "records were")
        if self._stored:
            return f"{were} published before that."
        doubted = "it" if self.records == 1 else "some of them"
        return f"{were} handed over; {doubted} may not be stored."

    def run(self, path: str) -> None:
        """Publish all records.

        Raises:
            BrokenInputLine: at a line that is not a record; those before it are published.
            KeyboardInterrupt: it was interrupted; what was read until then is published.
            DssError: the daemon is away, or refuses.
        """
        asyncio.run(self._publish(path))
        if self._end is not None:
            raise self._end

    async def _publish(self, path: str) -> None:
        with opened(path) as descriptor, outages_noted(self._settings):
            async with connected(self._settings) as client:
                await require_daemon(client, self._settings)
                async with client.producer(self._topic) as producer:
                    await self._send_all(path, descriptor, producer)

    async def _send_all(self, path: str, descriptor: int, producer: "Producer") -> None:
        """Send until the end, however it comes; all records read until then are published."""
        try:
            await self._send_lines(path, descriptor, producer)
        except asyncio.CancelledError:
            # Ctrl-C: the flush is still to come, so this task continues.
            self._end = KeyboardInterrupt()
            _go_on()
        except (BrokenInputLine, InputUnreadable) as failure:
            self._end = failure
        await producer.flush()
        self._stored = True

    async def _send_lines(self, path: str, descriptor: int, producer: "Producer") -> None:
        with reading(self._settings, descriptor, self._topic) as read_bytes:
            async for number, line in lines(path, descriptor, read_bytes):
                await self._send(number, line, producer)

    async def _send(self, number: int, line: bytes, producer: "Producer") -> None:
        record = self._parse(number, line)
        try:
            await producer.enqueue(
                record.payload,
                key=record.key,
                subject=record.subject,
                headers=record.headers or None,
            )
        except _FAULTS_OF_A_RECORD as refused:
            raise BrokenInputLine(line=number, reason=refused.message.rstrip(".")) from refused
        self.records += 1
        self.bytes += len(record.payload)


def _go_on() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.uncancel()
