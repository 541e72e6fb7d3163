"""Reading ranges of streams: tables of their records, from the daemon's files or over the wire.

Invariant: of each range every kept record comes once, in order, or an error: no record is passed in
silence. Damage is an error, and so is retention that reaches into a range while it is read; the
ranges of a job are held, so that it never meets that.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from dss_bulk.in_place import tables_in_place
from dss_bulk.selecting import selected
from dss_bulk.selection import Selection
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
) -> AsyncGenerator[tuple[str, pa.Table], None]:
    """Streams and records, range after range; with the columns of `dss_bulk.tables.RECORDS`.

    Args:
        client: of the daemon that has them.
        ranges: what is read, in this order.
        subject: a filter; records with other subjects are left out.
        in_place: files are read where this process may open them; else all is sent.

    Raises:
        StreamDamaged: a record cannot be read.
        OffsetOutOfRange, StreamNotFound: a part of a range is not kept.
        DssError: the daemon refuses, or the connection was lost.
    """
    selection = Selection(None if subject is None else TopicFilter.parse(subject))
    for each in ranges:
        at = each.start
        if in_place:
            async with aclosing(tables_in_place(client, each)) as read:
                async for table, behind in read:
                    at = behind
                    yield each.stream, selected(table, selection)
            # Where nothing could be read, the files are on another machine, or another user's.
            in_place = at > each.start or each.start == each.end
        if at < each.end:
            async with aclosing(_over_the_wire(client, replace(each, start=at), subject)) as tables:
                async for table in tables:
                    yield each.stream, table


async def _over_the_wire(
    client: Client, wanted: SourceRange, subject: str | None
) -> AsyncGenerator[pa.Table, None]:
    reader = client.read(subject, stream=wanted.stream, start=wanted.start, end=wanted.end)
    records = 0
    async with aclosing(reader.batches()) as batches:
        async for batch in batches:
            table = batch.to_arrow(key_hashes=True)
            # A daemon that knows no end offset goes on.
            table = table.filter(pc.less(table["offset"], wanted.end))
            if not table.num_rows:
                break
            records += table.num_rows
            yield table
    if records < wanted.end - wanted.start:
        await _require_kept(client, wanted)


async def _require_kept(client: Client, wanted: SourceRange) -> None:
    """Make sure that what did not come was left out, not deleted meanwhile.

    Raises:
        OffsetOutOfRange, StreamNotFound: retention or a removal was quicker.
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
