"""What ``dssctl records`` does: resolve the place, look, print, say where the look ended."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from dss_core.errors import (
    DssError,
    IllegalArgument,
    OffsetNotWritten,
    OffsetOutOfRange,
    RecordLeftOut,
    TimedOut,
)
from dss_core.ids import StreamName
from dssctl.connection import connected, in_time, require_daemon
from dssctl.output import Item, Section, growing, note, note_condition, show_list, show_one
from dssctl.progress import looking
from dssctl.quantities import moment_us
from dssctl.records.kinds import PAGE_KIND, PLACED_KIND, STORED_KIND, WHOLE_KIND, found_item
from dssctl.records.levels import Sought, Standings, in_queues, may_be_gone
from dssctl.records.looking import Found, Look, RecordsWanted, Tell, first, matching, newest
from dssctl.records.payloads import Decoding, payload_lines
from dssctl.records.places import (
    Span,
    between,
    from_offset,
    resolved,
    spans_of,
    topic_and_stream,
)
from dssctl.records.standings import STANDING_KIND, standings_of
from dssctl.settings import Format, Settings

if TYPE_CHECKING:
    from dss_client import Client
    from dssctl.output.model import Kind


@dataclass(frozen=True, slots=True)
class Peek:
    """Which records to look at."""

    topic: str
    stream: str | None
    offset: int | None
    at: str | None
    last: int | None
    number: int
    decoding: Decoding


@dataclass(frozen=True, slots=True)
class Find:
    """Which records to find, and how far to look."""

    topic: str
    stream: str | None
    offset: int | None
    wanted: RecordsWanted
    since: str | None
    until: str | None
    number: int
    looked_max: int
    decoding: Decoding
    group: str | None = None
    """The group for which each record's state is told. Records that only its queues have are found
    too."""


def peek(settings: Settings, asked: Peek) -> None:
    """Print the records.

    Raises:
        DssError: there is no such topic, stream or offset; or some are damaged, told at the end.
    """
    found, look = asyncio.run(_peeked(settings, asked))
    show_list(settings, _kind(settings), [found_item(each, asked.decoding) for each in found])
    if look.damage is not None:
        raise look.damage


async def _peeked(settings: Settings, asked: Peek) -> tuple[list[Found], Look]:
    tell = partial(note_condition, settings)
    async with connected(settings) as client:
        await require_daemon(client, settings)
        topic, stream = topic_and_stream(asked.topic, asked.stream)
        spans = await spans_of(client, topic, stream)
        if asked.offset is not None:
            spans = [from_offset(_only(spans, "--offset"), asked.offset)]
        if asked.at is not None:
            at = resolved(asked.at, settings.clock_us())
            spans = await between(client, spans, at, None)
        look = Look(spans)
        if asked.offset is not None or asked.at is not None:
            looked = first(client, look, asked.number, tell)
        else:
            looked = newest(client, look, asked.last or asked.number, tell)
        return await in_time(settings, looked), look


def find(settings: Settings, asked: Find) -> None:
    """Print the records that have what is wanted, and say how far the look came.

    Raises:
        TimedOut: it took too long; what was found is printed.
        KeyboardInterrupt: it was interrupted; what was found is printed.
        DssError: there is no such topic or stream, or some records are damaged, told at the end.
    """
    search = _Search(settings, asked)
    kind = _kind(settings) if asked.group is None else PLACED_KIND
    if sys.stdout.isatty():
        # Rows would tear the bar apart, so they are printed once it is gone.
        rows: list[Item] = []
        try:
            search.run(rows.append)
        finally:
            show_list(settings, kind, rows)
            search.tell_end()
    else:
        with growing(settings, kind) as listing:
            try:
                search.run(listing.add)
            finally:
                search.tell_end()
    if search.look.damage is not None:
        raise search.look.damage


class _Search:
    """One run of `find`."""

    def __init__(self, settings: Settings, asked: Find) -> None:
        self._settings = settings
        self._asked = asked
        self._matched = 0
        self._began = False
        self._kept: list[Span] = []
        self._queues_cut = False
        """Not all of the queues was looked through."""
        self._only_in_queues = 0
        self.look = Look(())

    def run(self, add: Callable[[Item], None]) -> None:
        """Look until all was looked at, enough was found, or a bound is met."""
        with looking(self._settings, f"search in {self._asked.topic}") as show:
            asyncio.run(self._in_time(add, show))

    async def _in_time(self, add: Callable[[Item], None], show: Callable[[int, int], None]) -> None:
        seconds = self._settings.wait_s
        try:
            async with asyncio.timeout(seconds):
                await self._find(add, show)
        except TimeoutError as late:
            raise TimedOut(what="The search", seconds=f"{seconds:g}") from late

    async def _find(self, add: Callable[[Item], None], show: Callable[[int, int], None]) -> None:
        asked = self._asked
        async with connected(self._settings) as client:
            await require_daemon(client, self._settings)
            self.look = look = Look(await self._spans(client))
            self._began = True
            tell = partial(note_condition, self._settings)
            every = min(look.total, asked.looked_max)
            standings = None if asked.group is None else await Standings.of(client, asked.group)
            found = self._found(client, tell)
            async for each in found:
                if each is None:
                    show(look.looked, every)
                    continue
                item = found_item(each, asked.decoding)
                if standings is not None:
                    where = await standings.of_record(client, each.stream, each.offset)
                    item = {**item, **where}
                add(item)
                self._matched += 1
                if self._matched == asked.number:
                    await found.aclose()
                    return

    async def _found(self, client: "Client", tell: Tell) -> AsyncGenerator[Found | None, None]:
        """In the streams, then what only queues of the group have."""
        asked, look = self._asked, self.look
        found = matching(client, look, asked.wanted, asked.looked_max, tell)
        async with aclosing(found) as in_streams:
            async for each in in_streams:
                yield each
        if asked.group is None or look.unlooked:
            return
        topic, stream = topic_and_stream(asked.topic, asked.stream)
        kept_from = {span.stream: span.kept_from for span in self._kept}
        if not may_be_gone(kept_from, [StreamName.parse(each).ordinal for each in kept_from]):
            return
        now_us = self._settings.clock_us()
        since, until = resolved(asked.since, now_us), resolved(asked.until, now_us)
        since_us, until_us = (
            None if each is None else moment_us(each, now_us=now_us) for each in (since, until)
        )
        sought = Sought(topic, stream, asked.wanted, since_us, until_us, kept_from)
        async with aclosing(in_queues(client, asked.group, sought, asked.looked_max)) as in_them:
            async for each in in_them:
                self._queues_cut = self._queues_cut or each is None
                self._only_in_queues += each is not None
                yield each

    async def _spans(self, client: "Client") -> list[Span]:
        asked, now_us = self._asked, self._settings.clock_us()
        since, until = resolved(asked.since, now_us), resolved(asked.until, now_us)
        topic, stream = topic_and_stream(asked.topic, asked.stream)
        spans = await spans_of(client, topic, stream, asked.wanted.key)
        self._kept = spans
        if asked.offset is not None:
            spans = [from_offset(_only(spans, "--offset"), asked.offset)]
        if since is None and until is None:
            return spans
        return await between(client, spans, since, until)

    def tell_end(self) -> None:
        """Say how much was looked at, and how to go on where that was not all."""
        if not self._began:
            return
        look = self.look
        # What one read brings reaches further than the last match.
        left = sum(span.length for span in look.unlooked)
        looked = f"looked at {look.total - left} of {look.total} offsets"
        note(self._settings, f"{looked}, {self._matched} match")
        if self._only_in_queues:
            there = f"{self._only_in_queues} of them: the topic has them no more, queues of "
            note(self._settings, f"{there}{self._asked.group} do")
        if self._queues_cut:
            more = f"the queues of {self._asked.group} were not looked through: --look-at N"
            note(self._settings, more)
        if look.unlooked:
            rest = look.unlooked[0]
            others = len(look.unlooked) - 1
            and_others = f"; {others} more streams were not looked at" if others else ""
            where = f"--stream {rest.stream} --offset {rest.start}"
            note(self._settings, f"go on: the same with {where}{and_others}")


def get(settings: Settings, stream: str, offset: int, decoding: Decoding) -> None:
    """Print one record whole, and where it stands for groups.

    Raises:
        OffsetNotWritten, RecordLeftOut, StreamDamaged: there is none.
        DssError: there is no such stream.
    """
    found, standings = asyncio.run(_got(settings, stream, offset))
    item = {**found_item(found, decoding), "groups": [dict(each) for each in standings]}
    sections = [Section("groups", STANDING_KIND)] if standings else []
    if settings.format in {Format.TABLE, Format.WIDE}:
        item["content"] = list(payload_lines(found.payload, decoding))
        sections.append(Section("content"))
        for command in dict.fromkeys(str(each["command"]) for each in standings if each["command"]):
            note(settings, f"next: {command}")
    show_one(settings, PAGE_KIND, item, sections)


async def _got(settings: Settings, stream: str, offset: int) -> tuple[Found, list[Item]]:
    async with connected(settings) as client:
        await require_daemon(client, settings)
        topic, _ = topic_and_stream(stream, None)
        (span,) = await spans_of(client, topic, stream)
        if offset < span.start:
            fields = {"start": span.start, "end": span.end, "stream": stream}
            raise OffsetOutOfRange(offset=offset, **fields)
        look = Look([from_offset(span, offset)])
        found = await in_time(settings, first(client, look, 1, _untold))
        if look.damage is not None and int(look.damage.fields["offset"]) <= offset:
            raise look.damage
        if not found:
            command = f"dssctl records peek {stream}"
            raise OffsetNotWritten(stream=stream, end=span.end, offset=offset, command=command)
        if found[0].offset != offset:
            raise RecordLeftOut(stream=stream, offset=offset, next=found[0].offset)
        return found[0], await in_time(settings, standings_of(client, found[0]))


def _untold(_damage: DssError) -> None:
    """It is raised."""


def _only(spans: list[Span], option: str) -> Span:
    if len(spans) != 1:
        raise IllegalArgument(argument=option, rule="it needs one stream; name it with --stream")
    return spans[0]


def _kind(settings: Settings) -> "Kind":
    return WHOLE_KIND if settings.format is Format.WIDE else STORED_KIND
