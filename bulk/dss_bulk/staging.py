"""Tables of records as staged files: routed, in the order of each key, cut into frames.

Invariant: the records of each partition keep the order in which they were added, and so do those of
each key. The file follows from the added records alone: keyless records go round-robin, beginning
with the number of the chunk, so a chunk that is staged again has the same records at the same
places.
"""

from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa

from dss_bulk.limits import STAGED_BATCH_BYTES
from dss_bulk.tables import columns_of
from dss_bulk.target import Target
from dss_core.arrow_columns import routed
from dss_core.staged import StagedFile, StagedFor, StagedWriter

STAGED_RECORD_BYTES = 64
"""How many bytes a record takes in a table besides key, payload and headers: adding up all columns
of each table would take as long as decoding it."""


class Staging:
    """One staged file of a chunk. Leaving its context by an error removes what was written."""

    def __init__(
        self,
        directory: Path,
        staged_for: StagedFor,
        target: Target,
        finished: Callable[[pa.Table], pa.Table] | None = None,
    ) -> None:
        """Begin a file.

        Args:
            directory: the folder for the file.
            staged_for: the job, chunk and target of the file.
            target: how records are routed.
            finished: turns added rows into the records to write, row for row, after routing, so
            that its additions are not moved about. It does not change keys.
        """
        self._finished = finished
        self._writer = StagedWriter(directory, staged_for)
        self._target = target
        self._gathered: list[pa.Table] = []
        self._gathered_bytes = 0
        self._keyless = staged_for.chunk

    def __enter__(self) -> Self:
        """The staging."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove the file unless it was finished."""
        self._writer.discard()

    @property
    def records(self) -> int:
        """How many records were added."""
        return self._writer.records + sum(int(table.num_rows) for table in self._gathered)

    def add(self, table: pa.Table) -> None:
        """Add records after those added before.

        Raises:
            RecordTooLarge, IllegalSubject, IllegalArgument: a record breaks a rule.
            HopLimit: it was copied too often already.
        """
        if not table.num_rows:
            return
        self._gathered.append(table)
        self._gathered_bytes += _bytes_of(table)
        if self._gathered_bytes >= STAGED_BATCH_BYTES:
            self._write()

    def finish(self) -> StagedFile | None:
        """Write the rest and give the file its name; None if there was no record.

        Raises:
            RecordTooLarge, IllegalSubject, IllegalArgument: a record breaks a rule.
            HopLimit: it was copied too often already.
        """
        self._write()
        if not self._writer.records:
            return None
        return self._writer.finish()

    def _write(self) -> None:
        if not self._gathered:
            return
        table = pa.concat_tables(self._gathered).unify_dictionaries().combine_chunks()
        self._gathered, self._gathered_bytes = [], 0
        target = self._target
        order, runs = routed(
            columns_of(table),
            target.router,
            target.partitions,
            target.factor,
            keyless_start=self._keyless,
        )
        self._keyless += table["key"].null_count
        table = table.take(order)
        ordered = columns_of(table if self._finished is None else self._finished(table))
        self._writer.add_runs(ordered, runs)


def _bytes_of(table: pa.Table) -> int:
    """The approximate bytes: exact for the large columns, and usual sizes for the others."""
    columns = (table["key"], table["payload"], table["headers"])
    values = sum(int(column.nbytes) for column in columns)
    return values + int(table.num_rows) * STAGED_RECORD_BYTES
