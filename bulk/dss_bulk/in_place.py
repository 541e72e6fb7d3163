"""Reads records directly from the daemon's segment files, if this process may open them.

The daemon says where the frames of a range lie, with the checksum of each run; then this process
reads them itself. This is safe beside a daemon that appends, rolls, trims, restarts or ingests: the
bytes of a visible run never change or move within their file (`dssd.log.read.run_places` says why),
and a removed file can still be read by a process that has it open, or cannot be opened at all.

Invariant: a record is returned only if the bytes of its run have the checksum that the daemon gave.
So a file of another machine, a torn or flipped one, or another file under the name is never taken
for it. Any difference ends the reading without an error: the daemon is then asked for the rest, and
says what is wrong. This module decides nothing about damage.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, suppress
from itertools import islice
from typing import BinaryIO

import pyarrow as pa
from xxhash import xxh3_64_intdigest

from dss_bulk.asked_ahead import AskedAhead
from dss_client import Client
from dss_client.job_values import SourceRange
from dss_client.stored_runs import StoredRun, StoredRuns
from dss_core.decode import decode
from dss_core.errors import OnlyBesideDaemon

IN_PLACE_SPAN_BYTES = 4 << 20
"""How much of a segment file is read at once: few calls, and little memory. A run may be larger."""

IN_PLACE_BATCH_BYTES = 2 << 20
"""How many bytes of frames become one table: for smaller tables the work for each table costs more
than its frames, and larger ones gain nothing."""

IN_PLACE_TABLES_AT_ONCE = 4
"""How many tables one turn of a thread reads, 8 MiB of usual frames: a lease is kept between two
turns."""

IN_PLACE_GAP_BYTES = 64 << 10
"""How many bytes of other streams are read along: they cost less than another call."""


_OFFSET_END = 1 << 63

Read = tuple[pa.Table, int]
"""Records, and the offset after them."""

Places = AskedAhead[StoredRuns]
"""Places of records, file after file."""


async def tables_in_place(
    client: Client, wanted: SourceRange, places: Places | None = None, *, encoded: bool = False
) -> AsyncGenerator[Read, None]:
    """The records of a range from its start on, as far as they can be read here.

    Args:
        client: of the daemon that has them.
        wanted: what is read.
        places: their places, if they were asked for before; closed here.
        encoded: subjects come as a dictionary.

    Raises:
        StreamNotFound: there is no such stream in this storage topic.
        DssError: the daemon refuses, or the connection was lost.
    """
    with suppress(OnlyBesideDaemon):  # a process on another host asks the daemon for everything
        async with aclosing(_found(client, wanted, places, encoded)) as found:
            async for read in found:
                yield read


async def _found(
    client: Client, wanted: SourceRange, places: Places | None, encoded: bool
) -> AsyncGenerator[Read, None]:
    async with aclosing(places or places_of(client, wanted)) as files:
        async for each in files:
            at = each.runs[0].base
            async for read in _read(_tables(each, wanted, encoded)):
                at = read[1]
                yield read
            if at < min(each.runs[-1].end, wanted.end):
                return


def places_of(client: Client, wanted: SourceRange, dead_letters: str = "") -> Places:
    """The places of the records of a range, asked for ahead of their use."""
    return AskedAhead(client.stored_runs(wanted, dead_letters))


async def _read(tables: Iterator[Read]) -> AsyncGenerator[Read, None]:
    """The tables of a file, several at once: each turn of a thread costs time."""
    # In a thread: a disk may take its time, and a lease is renewed meanwhile.
    while some := await asyncio.to_thread(list, islice(tables, IN_PLACE_TABLES_AT_ONCE)):
        for each in some:
            yield each
        if len(some) < IN_PLACE_TABLES_AT_ONCE:
            return


def _tables(stored: StoredRuns, wanted: SourceRange, encoded: bool) -> Iterator[Read]:
    """The tables of one file, up to the first run that is not as the daemon said."""
    mask = ((0, wanted.start), (wanted.end, _OFFSET_END))
    for frames, behind in _gathered(stored):
        records = decode(frames, mask, checksums=False)
        table = records.to_arrow(key_hashes=True, encoded=encoded)
        yield table, min(behind, wanted.end)


def _gathered(stored: StoredRuns) -> Iterator[tuple[bytes, int]]:
    """Frames, end to end, and the offset after them: many at once, as each table costs time."""
    held: list[memoryview] = []
    held_bytes = behind = 0
    try:
        with open(stored.path, "rb", buffering=0) as file:  # noqa: PTH123 - a path of the daemon
            for runs in _spans(stored.runs):
                pieces = _pieces(file, runs)
                if pieces is None:
                    break
                held += pieces
                held_bytes += sum(map(len, pieces))
                behind = runs[-1].end
                if held_bytes >= IN_PLACE_BATCH_BYTES:
                    yield b"".join(held), behind
                    held, held_bytes = [], 0
    except OSError:
        pass
    if held:
        yield b"".join(held), behind


def _pieces(file: BinaryIO, runs: Sequence[StoredRun]) -> list[memoryview] | None:
    """The bytes of neighbouring runs; None if they are not as the daemon said.

    Raises:
        OSError: the file cannot be read.
    """
    start, end = runs[0].position, runs[-1].position + runs[-1].length
    data = os.pread(file.fileno(), end - start, start)
    if len(data) < end - start:
        return None
    view = memoryview(data)
    pieces = [view[run.position - start :][: run.length] for run in runs]
    told = zip(runs, pieces, strict=True)
    return pieces if all(xxh3_64_intdigest(piece) == run.checksum for run, piece in told) else None


def _spans(runs: Sequence[StoredRun]) -> Iterator[Sequence[StoredRun]]:
    """Runs that are read at once, because they are near to each other."""
    first = 0
    for number in range(1, len(runs)):
        before, run = runs[number - 1], runs[number]
        gap = run.position - before.position - before.length
        whole = run.position + run.length - runs[first].position
        if not 0 <= gap <= IN_PLACE_GAP_BYTES or whole > IN_PLACE_SPAN_BYTES:
            yield runs[first:number]
            first = number
    yield runs[first:]
