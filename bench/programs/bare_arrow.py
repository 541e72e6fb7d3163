"""Baseline of a replay: the same records through Arrow alone, without a daemon.

Reads them from an Arrow file, hashes and routes their keys, brings the records of each partition
together in their order, and writes them to another file, a chunk of 32 MiB at a time, each synced:
``bare_arrow.py DIRECTORY RECORDS PARTITIONS``. The file that is read is made before the clock runs.
"""

import json
import os
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from workload import KEYS, PAYLOAD, TIMESTAMP_US, TOPIC

from dss_core.arrow_routing import hashes_of, partitions_of
from dss_core.routing import Router

CHUNK_RECORDS = 240_000
"""Some 32 MiB of them."""


def fill(path: Path, records: int) -> None:
    """The records, as a chunk has them."""
    keys = (KEYS * (CHUNK_RECORDS // len(KEYS) + 1))[:CHUNK_RECORDS]
    chunk = pa.table(
        {
            "subject": pa.array([TOPIC] * CHUNK_RECORDS).dictionary_encode(),
            "key": pa.array(keys, pa.binary()),
            "payload": pa.array([PAYLOAD] * CHUNK_RECORDS, pa.binary()),
            "timestamp_us": pa.array([TIMESTAMP_US] * CHUNK_RECORDS, pa.int64()),
        }
    )
    with pa.ipc.new_file(path, chunk.schema) as file:
        for _ in range(records // CHUNK_RECORDS):
            file.write_table(chunk.combine_chunks(), max_chunksize=CHUNK_RECORDS)


def replay(source: Path, target: Path, partitions: int) -> int:
    """Read, route, sort, write; how many records."""
    records = 0
    with (
        pa.OSFile(str(source)) as read,
        pa.ipc.open_file(read) as chunks,
        target.open("wb") as written,
        pa.ipc.new_file(written, chunks.schema) as file,
    ):
        for number in range(chunks.num_record_batches):
            chunk = pa.Table.from_batches([chunks.get_batch(number)])
            hashes = hashes_of(chunk["key"].to_pylist())
            order = pc.array_sort_indices(partitions_of(Router.BLOCK, hashes, partitions, 1))
            file.write_table(chunk.take(order))
            os.fdatasync(written.fileno())
            records += chunk.num_rows
    return records


def main(directory: str, records: int, partitions: int) -> None:
    """Fill, then run by the clock."""
    source, target = Path(directory) / "source.arrow", Path(directory) / "target.arrow"
    fill(source, records)
    began = time.perf_counter()
    done = replay(source, target, partitions)
    print(json.dumps({"records": done, "seconds": time.perf_counter() - began}))


main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
