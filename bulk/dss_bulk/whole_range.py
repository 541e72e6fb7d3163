"""One range of a stream at once, with what cannot be read of it: for who looks at that.

Invariant: what is in no table and told neither as damaged nor as lost did not come, and nobody said
why. Jobs that copy records read by `dss_bulk.source`, which ends at damage.
"""

from contextlib import aclosing, suppress
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from dss_bulk.tables import RECORDS
from dss_client import Client
from dss_client.job_values import SourceRange
from dss_core.errors import StreamDamaged
from dss_core.progress import Range, Ranges, clipped, normalised


@dataclass(frozen=True, slots=True)
class WholeRange:
    """What a reader was given."""

    table: pa.Table
    """With the columns of `dss_bulk.tables.RECORDS`."""
    damaged: Ranges
    """Offsets whose records cannot be read."""
    lost: Ranges
    """Offsets that never had a record, or lost it with the power."""


async def whole_range(client: Client, wanted: SourceRange) -> WholeRange:
    """All of a range, in memory.

    Raises:
        DssError: the daemon refuses, or the connection was lost.
    """
    damaged: list[Range] = []
    lost: list[Range] = []
    found: list[pa.Table] = []
    reader = client.read(
        stream=wanted.stream,
        start=wanted.start,
        records_max=wanted.end - wanted.start,
        on_damage=lambda told: damaged.append(_offsets(told)),
        on_lost=lambda _stream, start, end: lost.append((start, end)),
    )
    # What can be read comes all the same, and each damage is told before one of them is raised.
    with suppress(StreamDamaged):
        async with aclosing(reader.batches()) as batches:
            async for batch in batches:
                table = batch.to_arrow(key_hashes=True)
                found.append(table.filter(pc.less(table["offset"], wanted.end)))
                # Offsets may be left out, so fewer records than offsets lie before the end.
                if found[-1].num_rows < table.num_rows:
                    break
    return WholeRange(
        pa.concat_tables(found) if found else RECORDS.empty_table(),
        clipped(normalised(damaged), wanted.start, wanted.end),
        clipped(normalised(lost), wanted.start, wanted.end),
    )


def _offsets(told: StreamDamaged) -> Range:
    return int(told.fields["offset"]), int(told.fields["last"]) + 1
