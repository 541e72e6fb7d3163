"""Exports: records as Parquet files by date and hour, which a reader sees a whole run at a time.

::

    TARGET/
      _dss_export.json                     what was exported: the runs, where each stream ended,
                                           which storage topics there were, and what was deleted or
                                           went before an export could have it
      run=000001/                          appears at once, by one rename
        _dss_run.json                      the same as it is with this run
        date=2026-11-22/hour=05/
          part-00000012-0.parquet          chunk 12; its records of this hour, in their order
      .run=000002.export-9/                being written; readers pass over names with a dot

Date and hour are of the append time, in UTC. Columns: stream, offset, subject, key, payload,
headers, time, append_time; for dead letters also those of `dss_bulk.tables.DEAD`.

Invariant: files below ``run=`` never change. A replacement driver writes each file anew under the
same name, and the rename comes last, so a run is complete or not there. The run contains its notes:
if a full disk or a kill prevented the folder's own note of the last run, the folder still says
which topic it holds and where the next run begins.
"""

import json
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dss_bulk.tables import DEAD
from dss_core.errors import ExportBroken

EXPORT_ROWS_PER_GROUP = 131_072
"""How many rows a row group of Parquet has: readers prune by them, and larger ones compress little
better."""


MANIFEST = "_dss_export.json"
RUN_MANIFEST = "_dss_run.json"
HEADERS = pa.list_(
    pa.struct([pa.field("name", pa.utf8(), nullable=False), pa.field("value", pa.binary())])
)
"""A list rather than a map: names may be repeated, which maps of other readers forbid."""

_TIME = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema(
    [
        pa.field("stream", pa.utf8(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("subject", pa.utf8(), nullable=False),
        pa.field("key", pa.binary()),
        pa.field("payload", pa.binary(), nullable=False),
        pa.field("headers", HEADERS, nullable=False),
        pa.field("time", _TIME, nullable=False),
        pa.field("append_time", _TIME, nullable=False),
    ]
)
DEAD_SCHEMA = pa.schema([*SCHEMA, *DEAD])
"""The further columns of dead letters."""

UNFINISHED = ".part"
HOUR_US = 3_600_000_000
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Lost:
    """Offsets of a stream that were deleted before an export could have them."""

    stream: str
    start: int
    end: int


Ends = tuple[int, ...] | None
"""For a storage topic: the final end of each stream; None while it takes records."""


@dataclass(frozen=True, slots=True)
class Noted:
    """The additions of an export to its folder's notes on the topic."""

    ends: Mapping[str, int]
    """By stream: the offset at which the next export begins."""
    lost: Sequence[Lost] = ()
    """The ranges deleted since the last export."""
    storage_topics: Mapping[int, Ends] = field(default_factory=dict)
    """The topic's storage topics by ordinal; empty if an older version made the export."""
    gone: Sequence[int] = ()
    """Storage topics that were removed since the last export, and may not be exported
    completely."""


@dataclass(frozen=True, slots=True)
class ExportState:
    """The content of a target folder."""

    topic: str
    topic_id: int
    runs: int
    ends: Mapping[str, int]
    """By stream: the offset after the last that was exported."""
    job: str
    """The number of the job that published the last run."""
    lost: Sequence[Lost] = ()
    """The ranges missing in all runs together."""
    storage_topics: Mapping[int, Ends] = field(default_factory=dict)
    """The topic's storage topics by ordinal, as the last export found them."""
    gone: Sequence[int] = ()
    """Storage topics of which the runs may not have everything."""

    def with_noted(self, noted: Noted) -> "ExportState":
        """The state after another export."""
        return replace(
            self,
            ends={**self.ends, **noted.ends},
            lost=[*self.lost, *noted.lost],
            storage_topics=noted.storage_topics or self.storage_topics,
            gone=[*self.gone, *noted.gone],
        )


def held_name(topic: str, dead_letters: str) -> str:
    """The name of a folder's content: a topic, or the dead letters of it in a group."""
    return f"{topic}, dead letters of {dead_letters}" if dead_letters else topic


def schema_of(names: Sequence[str]) -> pa.Schema:
    """The columns of files for rows with these columns, and perhaps others."""
    return DEAD_SCHEMA if "entered_at" in names else SCHEMA


def exported(table: pa.Table, stream: str) -> pa.Table:
    """The records of a stream as rows of a file; dead letters with their reasons."""
    records = table.num_rows
    columns = [
        pa.repeat(pa.scalar(stream), records),
        table["offset"].cast(pa.int64()),
        table["subject"],
        table["key"],
        table["payload"],
        _header_lists(table["headers"]),
        table["timestamp_us"].cast(_TIME),
        table["append_time_us"].cast(_TIME),
    ]
    schema = schema_of(table.schema.names)
    if schema is DEAD_SCHEMA:
        columns += [table[field.name] for field in DEAD]
    return pa.Table.from_arrays(columns, schema=schema)


def _header_lists(headers: pa.ChunkedArray) -> pa.ChunkedArray:
    chunks = []
    for chunk in headers.chunks:
        whole = pa.concat_arrays([chunk])
        pairs = [whole.keys, whole.items]
        entries = pa.StructArray.from_arrays(pairs, fields=list(HEADERS.value_type))
        chunks.append(pa.ListArray.from_arrays(whole.offsets, entries, type=HEADERS))
    return pa.chunked_array(chunks, HEADERS)


def by_hour(table: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """Rows by folder, ``date=…/hour=…``, those of each hour in order."""
    hours = pc.divide(table["append_time"].cast(pa.int64()), HOUR_US)
    for hour in sorted(pc.unique(hours).to_pylist()):
        yield folder_of(hour), table.filter(pc.equal(hours, hour))


def folder_of(hour: int) -> str:
    """The folder of an hour, which is counted from 1970."""
    when = datetime.fromtimestamp(hour * 3_600, UTC)
    return f"date={when:%Y-%m-%d}/hour={when:%H}"


class ExportRun:
    """One run of one job into a folder."""

    def __init__(self, target: Path, topic: str, topic_id: int, job: str) -> None:
        self.target = target
        state = state_of(target) or ExportState(topic, topic_id, 0, {}, "")
        if (state.topic, state.topic_id) != (topic, topic_id):
            raise ExportBroken(
                folder=target, reason=f"it holds topic {state.topic} (id {state.topic_id})"
            )
        self._state = state
        self._job = job
        self.published = state.job == job
        """Whether it is published, by this driver or an earlier one of the job."""
        self.folder = _folder_of_run(target, max(state.runs + (not self.published), 1))
        self.unfinished = target / f".{self.folder.name}.{job}"

    @property
    def before(self) -> ExportState:
        """The state of the folder after the earlier runs."""
        return self._state

    def write_chunk(self, chunk: int, parts: Iterator[tuple[str, pa.Table]]) -> int:
        """Write the rows of a chunk, given by stream; returns their number.

        Raises:
            OSError: they cannot be written.
        """
        tables = [exported(table, stream) for stream, table in parts if table.num_rows]
        if not tables:
            return 0
        whole = pa.concat_tables(tables)
        self.begin()
        for folder, rows in by_hour(whole):
            write_part(self.unfinished, folder, chunk, rows)
        return int(whole.num_rows)

    def begin(self) -> None:
        """Make the folder for the parts."""
        self.unfinished.mkdir(parents=True, exist_ok=True)
        _sync(self.target)

    def discard_if_empty(self) -> None:
        """Remove the folder if nothing was written to it: a run without records has none."""
        if not any(self.unfinished.iterdir()):
            self.unfinished.rmdir()

    def output(self, records: int, *, last: bool) -> str:
        """The manifest's note on a chunk; for the last one with the size of the run."""
        said: dict[str, object] = {"records": records, "run": self.folder.name}
        if last:
            files = self.folder.rglob("*.parquet")
            said["folder"] = str(self.folder)
            said["bytes"] = sum(path.stat().st_size for path in files)
        return json.dumps(said)

    def publish(self, noted: Noted) -> None:
        """Make the run readable, and note where the next one begins and what is missing.

        After a kill or without room, a repetition continues where it stopped.

        Raises:
            ExportBroken: another export was sooner.
            OSError: the folder cannot be changed.
        """
        if not self.published:
            before, there = self._state, self.unfinished.exists()
            state = replace(before.with_noted(noted), runs=before.runs + there, job=self._job)
            if there:
                self._appear(state)
            self._state = state
            self.published = True
        self.target.mkdir(parents=True, exist_ok=True)
        _write(self.target / MANIFEST, self._state)

    def note(self, noted: Noted) -> None:
        """Store notes if there is nothing to write, but there were earlier runs.

        Raises:
            ExportBroken: it cannot be written down.
        """
        state = self._state.with_noted(noted)
        if state == self._state or not self._state.ends:
            return
        try:
            _write(self.target / MANIFEST, state)
        except OSError as error:
            reason = f"{MANIFEST} cannot be written: {error.strerror}"
            raise ExportBroken(folder=self.target, reason=reason) from error
        self._state = state

    def _appear(self, state: ExportState) -> None:
        if self.folder.exists():
            reason = f"another export has published {self.folder.name} meanwhile"
            raise ExportBroken(folder=self.target, reason=reason)
        for left in self.unfinished.rglob(f"*{UNFINISHED}"):
            left.unlink()  # left by an attempt that was given up
        _write(self.unfinished / RUN_MANIFEST, state)
        self.unfinished.rename(self.folder)
        _sync(self.target)

    def discard(self) -> None:
        """Remove files that were written and not published."""
        shutil.rmtree(self.unfinished, ignore_errors=True)


def write_part(run: Path, folder: str, chunk: int, rows: pa.Table) -> None:
    """Write the rows of a chunk for a folder of a run, ``date=…/hour=…``.

    Several attempts may write the same rows at once, and the last one counts. The folder of the run
    is not made here: an attempt that comes after the run is published fails, and leaves nothing.

    Raises:
        OSError: they cannot be written.
    """
    path = run / folder / f"part-{chunk:08d}.parquet"
    for missing in (path.parent.parent, path.parent):
        missing.mkdir(exist_ok=True)
    unfinished = path.with_suffix(f".{secrets.token_hex(4)}{UNFINISHED}")
    try:
        pq.write_table(rows, unfinished, compression="zstd", row_group_size=EXPORT_ROWS_PER_GROUP)
        _sync(unfinished)
        unfinished.rename(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    # A committed chunk is not written again, so its file must survive a crash of the machine.
    for changed in (path.parent, path.parent.parent, run):
        _sync(changed)


def state_of(target: Path) -> ExportState | None:
    """The notes of a folder; None if nothing was exported to it.

    Raises:
        ExportBroken: it holds something else.
    """
    noted = _read(target, target / MANIFEST)
    runs = 0 if noted is None else noted.runs
    # A published run that is not noted yet.
    return _read(target, _folder_of_run(target, runs + 1) / RUN_MANIFEST) or noted


def _folder_of_run(target: Path, number: int) -> Path:
    return target / f"run={number:06d}"


def _read(target: Path, path: Path) -> ExportState | None:
    try:
        said = json.loads(path.read_text())
        if said["format"] != _FORMAT:
            raise ExportBroken(folder=target, reason=f"its format is {said['format']}")
        lost = [Lost(**each) for each in said.get("lost", ())]
        return ExportState(
            said["topic"],
            said["topic_id"],
            said["runs"],
            said["ends"],
            said["job"],
            lost,
            storage_topics_of(said.get("storage_topics", {})),
            said.get("gone", []),
        )
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise ExportBroken(folder=target, reason=f"{path.name} cannot be read") from error


def storage_topics_of(said: Mapping[str, Sequence[int] | None]) -> dict[int, Ends]:
    """Storage topics as JSON."""
    return {int(at): None if ends is None else tuple(ends) for at, ends in said.items()}


def _write(path: Path, state: ExportState) -> None:
    """Replace the file, durably."""
    unfinished = path.with_name(f".{path.name}")
    with unfinished.open("w") as file:
        json.dump({"format": _FORMAT, **asdict(state)}, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    unfinished.rename(path)
    _sync(path.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
