"""Dead letters as the records that they were: unpacks tables of queue entries.

An entry has two more headers than its record, and its offset and time are those of the queue. This
module restores the record's stream, offset and append time, and puts the entry's fields into
columns beside it, `dss_bulk.tables.DEAD`, with the names of ``dssctl dlq ls -o json``. For callers
that copy the record, it puts them into headers instead (`dss_core.dead_origin`).

Invariant: every entry comes once. The entries of a lane come in the order of their records, so
those of a key do too.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from itertools import groupby
from typing import NamedTuple

import pyarrow as pa

from dss_api.lane_entries import entry_from
from dss_bulk.source import tables_of
from dss_bulk.tables import DEAD, HEADERS_TYPE
from dss_client import Client
from dss_client.job_values import Job, SourceRange
from dss_core.dead_origin import error_words, told_headers
from dss_core.errors import FrameCorrupt
from dss_core.ids import StreamName
from dss_core.lane import ERROR_HEADER, LANE_HEADER, LaneEntry
from dss_core.rows_layout import Headers


class _Taken(NamedTuple):
    """An unpacked entry."""

    headers: Headers
    """The record's own headers."""
    entry: LaneEntry
    error: str


def records_of(
    client: Client,
    job: Job,
    ranges: Sequence[SourceRange],
    *,
    in_place: bool = True,
    encoded: bool = False,
    tells: bool = False,
) -> AsyncGenerator[tuple[str, pa.Table], None]:
    """The records that a chunk reads, by stream: of a topic, or dead letters of a group.

    Args:
        client: of the daemon that has them.
        job: the job of the chunk.
        ranges: what is read.
        in_place: as in `dss_bulk.source.tables_of`.
        encoded: likewise, for records of a topic.
        tells: headers say why a record was a dead letter.

    Raises:
        DssError: as `dss_bulk.source.tables_of`.
        FrameCorrupt: what is read is no entry of a queue.
    """
    if not job.dead_letters:
        return tables_of(client, ranges, in_place=in_place, encoded=encoded)
    return _dead_letters(client, job, ranges, in_place=in_place, tells=tells)


async def _dead_letters(
    client: Client, job: Job, ranges: Sequence[SourceRange], *, in_place: bool, tells: bool
) -> AsyncGenerator[tuple[str, pa.Table], None]:
    group = job.dead_letters
    for _, lane in groupby(ranges, key=lambda each: each.stream):
        read = tables_of(client, tuple(lane), in_place=in_place, dead_letters=group)
        async with aclosing(read) as tables:
            held = [table async for _, table in tables]
        if held:
            whole = pa.concat_tables(held)
            told = group if tells else ""
            for each in await asyncio.to_thread(_by_stream, whole, job.source, told):
                yield each


def _by_stream(table: pa.Table, topic: str, told: str) -> list[tuple[str, pa.Table]]:
    return list(opened(table, topic, told=told, in_order=True))


def opened(
    table: pa.Table, topic: str, *, told: str = "", in_order: bool = False
) -> Iterator[tuple[str, pa.Table]]:
    """The records of entries, by stream, with the columns `DEAD`.

    Args:
        table: entries, with the columns of `dss_bulk.tables.RECORDS`.
        topic: the topic of the records.
        told: the group; if it is given, headers say what the columns do.
        in_order: those of a stream in the order of offsets; else in the order of death.

    Raises:
        FrameCorrupt: an entry lacks its headers.
    """
    taken = [_taken(headers) for headers in table["headers"].to_pylist()]
    if in_order:
        places = [_place(each.entry) for each in taken]
        order = sorted(range(len(taken)), key=places.__getitem__)
        taken = [taken[at] for at in order]
        table = table.take(pa.array(order, pa.int64()))
    records = _records(table, taken, told)
    start = 0
    for (ordinal, partition), some in groupby(taken, key=lambda each: _place(each.entry)[:2]):
        count = len(list(some))
        yield str(StreamName(topic, ordinal, partition)), records.slice(start, count)
        start += count


def _place(entry: LaneEntry) -> tuple[int, int, int]:
    return entry.origin_ordinal, entry.origin_partition, entry.origin_offset


def _taken(headers: Headers) -> _Taken:
    added = dict(each for each in headers if each[0] in (LANE_HEADER, ERROR_HEADER))
    if LANE_HEADER not in added:
        raise FrameCorrupt(reason="an entry of a queue has no header that says which")
    own = tuple(each for each in headers if each[0] not in added)
    error = added.get(ERROR_HEADER, b"").decode("utf-8", "replace")
    return _Taken(own, entry_from(added[LANE_HEADER]), error)


def _records(table: pa.Table, taken: Sequence[_Taken], told: str) -> pa.Table:
    entered_us = table["append_time_us"].to_pylist()
    dead = _dead(taken, entered_us)
    replaced = {
        "offset": [each.entry.origin_offset for each in taken],
        "append_time_us": [each.entry.origin_time_us for each in taken],
    }
    for name, values in replaced.items():
        at = table.schema.get_field_index(name)
        table = table.set_column(at, name, pa.array(values, table.schema.field(at).type))
    headers: Sequence[Headers] = [each.headers for each in taken]
    if told:
        headers = [_told(each, told, at_us) for each, at_us in zip(taken, entered_us, strict=True)]
    at = table.schema.get_field_index("headers")
    table = table.set_column(at, "headers", pa.array(headers, HEADERS_TYPE))
    for field, column in zip(DEAD, dead.columns, strict=True):
        table = table.append_column(field, column)
    return table


def _told(taken: _Taken, group: str, entered_at_us: int) -> Headers:
    entry = taken.entry
    error = error_words(entry.error_type, taken.error, entry.cause)
    return told_headers(taken.headers, group, entry.attempt, error, entered_at_us)


def _dead(taken: Sequence[_Taken], entered_us: Sequence[int]) -> pa.Table:
    entries = [each.entry for each in taken]
    columns = {
        "attempt": [each.attempt for each in entries],
        "redrives": [each.redrives for each in entries],
        "cause": [each.cause for each in entries],
        "error_type": [each.error_type or None for each in entries],
        "error": [each.error or None for each in taken],
        "fingerprint": [_fingerprint(each) for each in entries],
        "client_id": [each.client_id or None for each in entries],
        "first_failure_at": [each.first_failure_ms * 1_000 or None for each in entries],
        "entered_at": entered_us,
    }
    return pa.table([pa.array(columns[field.name], field.type) for field in DEAD], schema=DEAD)


def _fingerprint(entry: LaneEntry) -> str | None:
    return f"{entry.fingerprint:016x}" if entry.fingerprint else None
