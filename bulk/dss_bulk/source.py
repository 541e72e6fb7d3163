"""Reading what a chunk reads, over the wire: tables of the records of its ranges.

Invariant: of each range every kept record comes once, in order, or an error; damage ends the job,
because a job never passes a record in silence.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import pyarrow as pa
import pyarrow.compute as pc

from dss_client import Client
from dss_client.job_values import SourceRange


async def tables_of(
    client: Client, ranges: Sequence[SourceRange]
) -> AsyncGenerator[tuple[str, pa.Table], None]:
    """Streams and records, range after range; with the columns of `dss_bulk.tables.RECORDS`.

    Raises:
        StreamDamaged: a record cannot be read.
        DssError: the daemon refuses, or the connection was lost.
    """
    for each in ranges:
        reader = client.read(
            stream=each.stream, start=each.start, records_max=each.end - each.start
        )
        async with aclosing(reader.batches()) as batches:
            async for batch in batches:
                table = batch.to_arrow(key_hashes=True)
                # Offsets may be left out, so fewer records than offsets lie before the end.
                table = table.filter(pc.less(table["offset"], each.end))
                if not table.num_rows:
                    break
                yield each.stream, table
