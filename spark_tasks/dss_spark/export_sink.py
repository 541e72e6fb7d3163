"""The sink of exports, as each process of Spark has it: as small as that of `dss_spark.sink`.

Invariant: only a number passes between these processes, so nothing of ours is loaded in those that
make, plan and commit a write.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage

from dss_spark.answers import write_answer
from dss_spark.names import EXPORT

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Written(WriterCommitMessage):
    """The result of one task."""

    records: int


class ExportSink(DataSource):
    """The sink, as Spark knows it."""

    @classmethod
    def name(cls) -> str:
        """Its name in `write.format`."""
        return EXPORT

    def writer(self, schema: object, overwrite: bool) -> DataSourceArrowWriter:
        """The writer of one chunk."""
        said = self.options
        return _ExportWriter(Path(said["run"]), int(said["chunk"]), Path(said["answer"]))


class _ExportWriter(DataSourceArrowWriter):
    def __init__(self, run: Path, chunk: int, answer: Path) -> None:
        self._run = run
        self._chunk = chunk
        self._answer = answer

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> Written:
        """Write the files of some hours."""
        from dss_spark.export_tasks import written

        return Written(written(iterator, self._run, self._chunk))

    def commit(self, messages: Sequence[Written | None]) -> None:
        """Report to the driver how many records there were; this is not its process."""
        records = sum(message.records for message in messages if message is not None)
        write_answer(self._answer, {"records": records})

    def abort(self, messages: Sequence[Written | None]) -> None:
        """Do nothing: the files have the same names when they are written again."""
