"""Reads one range of a stream as a whole, with the ranges that cannot be read.

Records in the daemon's files are read there, if this process may; for the others the daemon is
asked, which sends records or says why there are none.

Invariant: an offset that is in no table, and reported neither as damaged nor as lost, is missing
without a reason. Jobs that copy records read by `dss_bulk.source`, which ends at damage.
"""

from contextlib import aclosing, suppress
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from dss_bulk.in_place import tables_in_place
from dss_bulk.offset_runs import runs_of
from dss_bulk.tables import RECORDS
from dss_client import Client
from dss_client.job_values import SourceRange
from dss_core.errors import StreamDamaged
from dss_core.progress import Range, Ranges, clipped, complement, normalised

IN_PLACE_HOLES_MAX = 64
"""How many parts of a range that the files lack are asked for one by one: with more of them, the
whole range is asked for at once."""


@dataclass(frozen=True, slots=True)
class WholeRange:
    """The records that a reader got."""

    table: pa.Table
    """With the columns of `dss_bulk.tables.RECORDS`."""
    damaged: Ranges
    """Offsets whose records cannot be read."""
    lost: Ranges
    """Offsets that never had a record, or lost it with the power."""


async def whole_range(client: Client, wanted: SourceRange, *, in_place: bool = True) -> WholeRange:
    """The whole range, in memory; files are read if that is wanted and they may be opened.

    Raises:
        DssError: the daemon refuses, or the connection was lost.
    """
    told = _Told()
    tables = await _in_place(client, wanted) if in_place else []
    holes = _holes(tables, wanted)
    if len(holes) > IN_PLACE_HOLES_MAX:
        tables, holes = [], ((wanted.start, wanted.end),)
    for start, end in holes:
        tables += await _over_the_wire(client, wanted.stream, start, end, told)
    tables.sort(key=lambda table: int(table["offset"][0].as_py()))
    return WholeRange(
        pa.concat_tables(tables) if tables else RECORDS.empty_table(),
        clipped(normalised(told.damaged), wanted.start, wanted.end),
        clipped(normalised(told.lost), wanted.start, wanted.end),
    )


@dataclass(frozen=True, slots=True)
class _Told:
    """The daemon's explanation of offsets without records."""

    damaged: list[Range] = field(default_factory=list)
    lost: list[Range] = field(default_factory=list)

    def take_damage(self, told: StreamDamaged) -> None:
        self.damaged.append((int(told.fields["offset"]), int(told.fields["last"]) + 1))

    def take_loss(self, _stream: str, start: int, end: int) -> None:
        self.lost.append((start, end))


async def _in_place(client: Client, wanted: SourceRange) -> list[pa.Table]:
    async with aclosing(tables_in_place(client, wanted)) as read:
        return [table async for table, _ in read if table.num_rows]


def _holes(tables: list[pa.Table], wanted: SourceRange) -> Ranges:
    """The ranges that the files lack."""
    there = normalised(run for table in tables for run in runs_of(table["offset"]))
    return complement(there, wanted.start, wanted.end)


async def _over_the_wire(
    client: Client, stream: str, start: int, end: int, told: _Told
) -> list[pa.Table]:
    reader = client.read(
        stream=stream, start=start, end=end, on_damage=told.take_damage, on_lost=told.take_loss
    )
    found: list[pa.Table] = []
    # Readable records come all the same, and each damage is reported before one is raised.
    with suppress(StreamDamaged):
        async with aclosing(reader.batches()) as batches:
            async for batch in batches:
                table = batch.to_arrow(key_hashes=True)
                # A daemon that does not support an end offset goes on.
                table = table.filter(pc.less(table["offset"], end))
                if not table.num_rows:
                    break
                found.append(table)
    return found
