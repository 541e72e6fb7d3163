"""Backfills: rows of files as records of a topic, see `dss_bulk.rows` and `dss_bulk.inputs`.

Invariant: the rejects of a chunk are in their side file before the chunk is committed.
"""

import asyncio
import base64
import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import pyarrow as pa

from dss_bulk.inputs import InputFile, Inputs
from dss_bulk.limits import REJECTS_MAX
from dss_bulk.rejects import Reject
from dss_bulk.row_rule import RowRule
from dss_bulk.rows import checked, records_of
from dss_bulk.staging import Staging
from dss_bulk.target import Target
from dss_bulk.work import ChunkDone
from dss_client.job_values import Granted, JobChunk, JobInput
from dss_core.errors import IllegalJob, RowsRefused, SubjectOutsideTopic
from dss_core.filters import TopicFilter
from dss_core.staged import StagedFor

BACKFILL_ROWS_PER_CHUNK = 65_536
"""How many rows are published at once: some 16 MiB of usual records."""

BACKFILL_CHUNK_BYTES = 64 << 20
"""How many bytes of longer rows: the daemon takes 256 MiB, and JSON is larger than its source."""

BACKFILL_PARAMS_BYTES_MAX = 64 << 10
"""How many bytes of params the daemon takes; a backfill lists its files there."""

BACKFILL_FILES_PLAIN_BYTES_MAX = 8 << 10
"""How long the list may be as readable text: a longer one is packed, and some thousand files
fit."""


@dataclass(frozen=True, slots=True)
class BackfillParams:
    """The parameters of a backfill besides its target."""

    rule: RowRule
    files: tuple[InputFile, ...]
    rejects: str | None
    """A folder for side files; without it, a rejected row ends the job."""

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote."""
        fields = json.loads(text)
        listed = fields["files"]
        if isinstance(listed, str):
            listed = json.loads(zlib.decompress(base64.b85decode(listed)))
        files = tuple(InputFile(*each) for each in listed)
        return cls(RowRule.from_json(json.dumps(fields["rule"])), files, fields["rejects"])

    def to_json(self) -> str:
        """The parameters for the manifest."""
        rule = json.loads(self.rule.to_json())
        files: str | tuple[InputFile, ...] = self.files
        plain = json.dumps(files)
        if len(plain) > BACKFILL_FILES_PLAIN_BYTES_MAX:
            files = base64.b85encode(zlib.compress(plain.encode(), 9)).decode()
        return json.dumps({"rule": rule, "files": files, "rejects": self.rejects})

    def require_room(self, job: str) -> None:
        """Check that a manifest can hold them.

        Raises:
            IllegalJob: there are too many files.
        """
        size = len(self.to_json())
        if size > BACKFILL_PARAMS_BYTES_MAX:
            rule = (
                f"the list of its {len(self.files):,} files takes {size:,} bytes, of "
                f"{BACKFILL_PARAMS_BYTES_MAX:,}; make several jobs, or join the files"
            )
            raise IllegalJob(job=job, rule=rule)


def as_they_are(paths: Sequence[Path]) -> tuple[InputFile, ...]:
    """Entries for files that were not read yet, with about the number of rows that they may have.

    Such a list takes about as much of a manifest as the final list of the files.
    """
    found = []
    for path in paths:
        if path.exists():  # the reader reports the faults of other paths
            stat = path.stat()
            rows = stat.st_size * 5 // 7
            found.append(InputFile(str(path.resolve()), stat.st_size, stat.st_mtime_ns, rows))
    return tuple(found)


def chunks_of(inputs: Inputs) -> tuple[JobInput, ...]:
    """The chunks of a backfill: runs of rows."""
    total_bytes = inputs.bytes
    found = []
    at_most = BACKFILL_CHUNK_BYTES // max(1, inputs.row_bytes)
    rows = max(1, min(BACKFILL_ROWS_PER_CHUNK, at_most))
    for start in range(0, inputs.rows, rows):
        end = min(start + rows, inputs.rows)
        size = total_bytes * (end - start) // inputs.rows
        found.append(JobInput(json.dumps({"start": start, "end": end}), end - start, size))
    return tuple(found)


class RowsLook:
    """Looks through rows before records are made of them, and counts their result."""

    def __init__(self, rule: RowRule, patterns: Sequence[str] = ()) -> None:
        """Begin without rows; subjects must match one of the patterns, if there are any."""
        self.records = 0
        self.rejects: list[Reject] = []
        self._rule = rule
        self._patterns = patterns
        self._filters = [TopicFilter.parse(pattern) for pattern in patterns]
        self._seen: set[str] = set()

    def take(self, rows: pa.Table, paths: Sequence[str]) -> None:
        """Look through more rows.

        Raises:
            SubjectOutsideTopic: a record has a subject that none of the patterns meets.
            RowsRefused: more rows are rejected than one job may have.
        """
        found = checked(rows, paths, self._rule)
        self.records += found.records
        self.rejects += found.rejects
        for subject in found.subjects - self._seen if self._filters else ():
            if not any(each.matches(subject) for each in self._filters):
                raise SubjectOutsideTopic(
                    subject=subject, topic=self._rule.topic, patterns=", ".join(self._patterns)
                )
        self._seen |= found.subjects
        if len(self.rejects) > REJECTS_MAX:
            raise rows_refused(self.rejects)


def looked_through(
    paths: Sequence[Path], rule: RowRule, patterns: Sequence[str] = ()
) -> tuple[Inputs, RowsLook]:
    """The files, and the result of all their rows; each file is read once.

    A published chunk stays, and none is published before all rows were looked at. So the driver
    reads the rows once more, when there is a job.

    Raises:
        SubjectOutsideTopic, RowsRefused: as `RowsLook.take`.
        InputRefused: a file is not as it should be.
    """
    look = RowsLook(rule, patterns)
    inputs = Inputs.looked_at(paths, rule, look.take)
    return inputs, look


def rows_refused(rejects: Sequence[Reject], rows: int = 0) -> RowsRefused:
    """The error for rows that make no record: it names some, or their number."""
    first = rejects[0]
    return RowsRefused(
        rows=rows or len(rejects), file=first.file, row=first.row, reason=first.reason
    )


class BackfillWork:
    """Reads rows, makes records, stages them."""

    def __init__(self, granted: Granted) -> None:
        assert granted.target is not None, "a backfill writes to a topic"
        target = granted.target
        self._granted = granted
        self._params = BackfillParams.from_json(granted.job.params)
        self._inputs = Inputs(self._params.files, self._params.rule)
        self._paths = [file.path for file in self._params.files]
        self._storage_topic_id = target.storage_topic_id
        self._target = Target(target.router, target.partitions, target.factor)

    async def chunk(self, chunk: JobChunk, *, last: bool) -> ChunkDone:
        """Stage the records of its rows.

        Raises:
            InputRefused: a file was changed.
            RowsRefused: a row makes no record, and there is no side file.
        """
        # Reading and sorting may take longer than a lease, which the loop keeps meanwhile.
        return await asyncio.to_thread(self._staged, chunk)

    def _staged(self, chunk: JobChunk) -> ChunkDone:
        self._inputs.require_unchanged()
        span = json.loads(chunk.input)
        now_us = self._granted.job.created_at_ms * 1_000
        rejects: list[Reject] = []
        staged_for = StagedFor(self._granted.job.job_id, chunk.number, self._storage_topic_id)
        with Staging(self._granted.staging, staged_for, self._target) as staging:
            for rows in self._inputs.batches(span["start"], span["end"]):
                made = records_of(rows, self._paths, self._params.rule, now_us)
                rejects += made.rejects
                staging.add(made.records)
            records = staging.records
            if rejects:
                if self._params.rejects is None:
                    raise rows_refused(rejects)
                set_aside(Path(self._params.rejects), chunk.number, rejects)
            file = staging.finish()
        output = json.dumps({"records": records, "rejects": len(rejects)})
        return ChunkDone(() if file is None else (file,), output, records)

    def stop(self) -> None:
        """Nothing runs elsewhere."""

    def discard(self) -> None:
        """Nothing to do: the daemon deletes staged files, and rejects are kept for the user."""


def set_aside(folder: Path, chunk: int, rejects: Sequence[Reject]) -> None:
    """Write the rejects of a chunk to its side file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"rejects-{chunk:08d}.jsonl"
    unfinished = path.with_suffix(".part")
    unfinished.write_text("".join(_lines(rejects)))
    unfinished.rename(path)


def _lines(rejects: Sequence[Reject]) -> Iterator[str]:
    for reject in rejects:
        yield json.dumps(reject._asdict()) + "\n"
