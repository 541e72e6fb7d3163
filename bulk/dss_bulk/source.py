"""Reads ranges of streams as tables of records, from the daemon's files or over the wire.

Invariant: every kept record of each range comes once, in order, or there is an error: no record is
skipped in silence. Damage is an error, and so is retention that removes records of a range while it
is read; the ranges of a job are held, so retention cannot.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from dss_bulk.in_place import Places, places_of, tables_in_place
from dss_bulk.selecting import selected
from dss_bulk.selection import RecordSelection
from dss_bulk.tables import with_encoded_subjects
from dss_client import Client
from dss_client.job_values import SourceRange
from dss_core.errors import OffsetOutOfRange, StreamNotFound
from dss_core.filters import TopicFilter
from dss_core.ids import StreamName


async def tables_of(
    client: Client,
    ranges: Sequence[SourceRange],
    *,
    subject: str | None = None,
    in_place: bool = True,
    encoded: bool = False,
    dead_letters: str = "",
) -> AsyncGenerator[tuple[str, pa.Table], None]:
    """Streams and records, range after range, with the columns of `dss_bulk.tables.RECORDS`.

    Args:
        client: of the daemon that has them.
        ranges: the ranges to read, in this order.
        subject: a filter; records with other subjects are left out.
        in_place: files are read if this process may open them; else the daemon sends everything.
        encoded: subjects come as a dictionary, for callers that move records: a subject then takes
        four bytes, and is processed once.
        dead_letters: a group, whose dead letters of the streams are read, as entries at their
        offsets in the queues.

    Raises:
        StreamDamaged: a record cannot be read.
        OffsetOutOfRange, StreamNotFound: a part of a range is not kept.
        DssError: the daemon refuses, or the connection was lost.
    """
    selection = RecordSelection(None if subject is None else TopicFilter.parse(subject))
    async with aclosing(_Asked(client, ranges, dead_letters)) as asked:
        for number, each in enumerate(ranges):
            at = each.start
            if in_place:
                places = asked.places(number)
                found = tables_in_place(client, each, places, encoded=encoded)
                async with aclosing(found) as read:
                    async for table, behind in read:
                        at = behind
                        yield each.stream, selected(table, selection)
                # If nothing could be read, the files are on another machine, or another user's.
                in_place = at > each.start or each.start == each.end
            if at < each.end:
                sent = _over_the_wire(client, replace(each, start=at), subject, dead_letters)
                async with aclosing(sent) as tables:
                    async for table in tables:
                        yield each.stream, with_encoded_subjects(table) if encoded else table


class _Asked:
    """The places of ranges, each asked for when the previous one is taken."""

    def __init__(self, client: Client, ranges: Sequence[SourceRange], dead_letters: str) -> None:
        self._client = client
        self._ranges = ranges
        self._dead_letters = dead_letters
        self._next: Places | None = None

    def places(self, number: int) -> Places:
        """The places of a range; the caller closes them."""
        taken = self._next or self._asked(number)
        self._next = self._asked(number + 1) if number + 1 < len(self._ranges) else None
        return taken

    def _asked(self, number: int) -> Places:
        return places_of(self._client, self._ranges[number], self._dead_letters)

    async def aclose(self) -> None:
        """Drop what was asked for and not taken."""
        if self._next is not None:
            await self._next.aclose()


async def _over_the_wire(
    client: Client, wanted: SourceRange, subject: str | None, dead_letters: str
) -> AsyncGenerator[pa.Table, None]:
    if dead_letters:
        async with aclosing(_entries_over_the_wire(client, wanted, subject, dead_letters)) as sent:
            async for table in sent:
                yield table
        return
    reader = client.read(subject, stream=wanted.stream, start=wanted.start, end=wanted.end)
    records = 0
    async with aclosing(reader.batches()) as batches:
        async for batch in batches:
            table = batch.to_arrow(key_hashes=True)
            # A daemon that does not support an end offset goes on.
            table = table.filter(pc.less(table["offset"], wanted.end))
            if not table.num_rows:
                break
            records += table.num_rows
            yield table
    if records < wanted.end - wanted.start:
        await _require_kept(client, wanted)


async def _entries_over_the_wire(
    client: Client, wanted: SourceRange, subject: str | None, dead_letters: str
) -> AsyncGenerator[pa.Table, None]:
    """As for records; but the daemon has no filter for queues."""
    selection = RecordSelection(None if subject is None else TopicFilter.parse(subject))
    at = wanted.start
    async with aclosing(client.read_entries(wanted, dead_letters).batches()) as batches:
        async for batch in batches:
            table = batch.to_arrow(key_hashes=True)
            if not table.num_rows:
                continue
            # A queue has no gaps, so missing entries were deleted: nobody held them.
            if table["offset"][0].as_py() != at:
                break
            at = table["offset"][-1].as_py() + 1
            yield selected(table, selection)
    if at < wanted.end:
        raise OffsetOutOfRange(
            offset=at,
            start=wanted.end,
            end=wanted.end,
            stream=f"the dead letters of {wanted.stream}",
        )


async def _require_kept(client: Client, wanted: SourceRange) -> None:
    """Check that missing records were filtered, not deleted meanwhile.

    Raises:
        OffsetOutOfRange, StreamNotFound: retention or a removal was sooner.
    """
    topic = StreamName.parse(wanted.stream).topic
    for found in await client.topics.locate(topic):
        if (found.stream, found.storage_topic_id) == (wanted.stream, wanted.storage_topic_id):
            if found.start > wanted.start:
                raise OffsetOutOfRange(
                    offset=wanted.start, start=found.start, end=found.end, stream=wanted.stream
                )
            return
    raise StreamNotFound(stream=wanted.stream)
