"""Frames of many records that are Arrow arrays and stand partition by partition.

What can be done for all of them at once is: limits, sizes, the batch that frames are slices of.
Invariant: frames of the same records, cut at the same rows, as `dss_core.build` makes of each run.
Importing this module imports pyarrow.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from dss_core import arrow_columns
from dss_core.arrow_columns import Run
from dss_core.arrow_layout import SUBJECT
from dss_core.build import (
    ROW_BYTES_FIXED,
    WRONG_VALUE,
    build_frame,
    check_subject_table,
    cuts,
    head_of_body,
)
from dss_core.columns import Columns
from dss_core.errors import IllegalArgument
from dss_core.frame import LAYOUT_ARROW, assembled
from dss_core.limits import ROWS_LAYOUT_RECORDS_BELOW
from dss_core.subject_table import Buffer

Pieces = tuple[Sequence[Buffer], int]
"""A frame, piece by piece, and its records."""


class BuiltRuns:
    """Makes frames, all of one producer and sequence."""

    def __init__(self, columns: Columns, *, producer_id: bytes, sequence: int) -> None:
        """Look at all records.

        Raises:
            RecordTooLarge, IllegalSubject, IllegalArgument: as `dss_core.build.build_frame`.
        """
        self._columns = columns
        self._producer_id = producer_id
        self._sequence = sequence
        try:
            self._bytes_upto = arrow_columns.bytes_upto(columns, ROW_BYTES_FIXED)
            self._batch = arrow_columns.whole_batch(columns)
            self._names, self._subjects = _subjects(columns)
        except WRONG_VALUE as error:
            raise IllegalArgument(argument="a record", rule=str(error)) from error

    def frames(self, runs: Sequence[Run]) -> Iterator[Pieces]:
        """The frames of each run, in their order.

        Raises:
            IllegalSubject, IllegalArgument: as `dss_core.build.build_frame`.
        """
        for partition, first, last in runs:
            for start, end in cuts(self._bytes_upto, first, last):
                few = end - start < ROWS_LAYOUT_RECORDS_BELOW
                make = self._in_rows if few else self._in_arrow
                yield make(partition, start, end), end - start

    def _in_rows(self, partition: int, start: int, end: int) -> Sequence[Buffer]:
        frame = build_frame(
            self._columns.cut(start, end),
            partition=partition,
            producer_id=self._producer_id,
            sequence=self._sequence,
        )
        return [frame]

    def _in_arrow(self, partition: int, start: int, end: int) -> Sequence[Buffer]:
        names, batch = self._names, self._batch.slice(start, end - start)
        if self._subjects is not None:
            names, indexes = arrow_columns.occurring(self._subjects[start:end])
            batch = batch.set_column(SUBJECT, batch.schema.field(SUBJECT), indexes)
        table, padding = head_of_body(names)
        check_subject_table(len(names), table)
        return assembled(
            LAYOUT_ARROW,
            records=end - start,
            partition=partition,
            subjects=len(names),
            producer_id=self._producer_id,
            sequence=self._sequence,
            parts=[table, padding, batch.serialize()],
        )


def _subjects(columns: Columns) -> tuple[list[str], pa.DictionaryArray | None]:
    """The one subject of all records; or none, and the subjects as they are."""
    if isinstance(columns.subjects, str):
        return [columns.subjects], None
    subjects = arrow_columns.dictionary_of(columns.subjects)
    arrow_columns.require_subjects(subjects)
    if len(subjects.dictionary) == 1:
        return subjects.dictionary.to_pylist(), None
    return [], subjects
