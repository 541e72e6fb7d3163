"""The sink through which chunks are staged, as each process of Spark has it.

Spark makes, plans and commits a write in three processes, forked anew for each chunk from one that
has loaded nothing of ours. So this module loads neither Arrow nor the code that makes records.
Tasks do (`dss_spark.staged_tasks`), but they are forked from a process that has it
(`worker_parent`).

Invariant: only text passes between these processes.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage

from dss_spark.answers import write_answer
from dss_spark.names import STAGE

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Staged(WriterCommitMessage):
    """The result of one task."""

    text: str


class StageSource(DataSource):
    """The sink, as Spark knows it."""

    @classmethod
    def name(cls) -> str:
        """Its name in `write.format`."""
        return STAGE

    def writer(self, schema: object, overwrite: bool) -> DataSourceArrowWriter:
        """The writer of one chunk; made in a process of Spark, and sent to the tasks."""
        return _StageWriter(self.options["plan"])


class _StageWriter(DataSourceArrowWriter):
    def __init__(self, plan: str) -> None:
        self._plan = plan

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> Staged:
        """Write the file of one attempt of one task."""
        from dss_spark.staged_tasks import staged

        return Staged(staged(iterator, self._plan))

    def commit(self, messages: Sequence[Staged | None]) -> None:
        """Report the files to the driver; this is not its process."""
        done = [json.loads(message.text) for message in messages if message is not None]
        said = {
            "files": [each["file"] for each in done if each["file"] is not None],
            "rejects": [reject for each in done for reject in each["rejects"]],
        }
        refusals = [each["refusal"] for each in done if each["refusal"] is not None]
        write_answer(Path(json.loads(self._plan)["answer"]), said, refusals)

    def abort(self, messages: Sequence[Staged | None]) -> None:
        """Remove files that do not count; the daemon sweeps those that are missed here."""
        directory = Path(json.loads(self._plan)["directory"])
        for message in messages:
            file = None if message is None else json.loads(message.text)["file"]
            if file is not None:
                (directory / file["name"]).unlink(missing_ok=True)
