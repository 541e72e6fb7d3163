"""Staging on Spark: Spark itself routes, shuffles and sorts records; tasks write staged files.

::

    frame ──partition_sql──► repartitionById ──► sortWithinPartitions ──► a staged file a task
                                                                             │ its name
    driver ◄── names, in the order of the tasks ── commit() in a process of Spark

A task writes a file whose name was drawn for this attempt (`dss_core.staged`), so attempts that are
killed, repeated or speculated never collide; Spark names at the end the files of the attempts that
counted. Nothing is published here: the driver commits the files with its lease.

Invariant: each partition of the target is written by one task, in the order of ``order``; so that
is also the order of each key. A record that breaks a rule ends the work at once, with its
condition; Spark would retry it, and report it in forty lines of a trace.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dss_bulk.copy_rule import CopyRule
from dss_bulk.rejects import Reject
from dss_bulk.target import Target
from dss_core.routing import Router
from dss_core.staged import StagedFile, StagedFor
from dss_spark.answers import read_answer
from dss_spark.names import HASH, STAGE
from dss_spark.routing import HASH as HASH_SQL
from dss_spark.routing import partition_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

STAGING_TASKS_MAX = 64
"""How many tasks stage one chunk at most: with more, frames would be far smaller than usual, and a
task costs some ten milliseconds."""


PARTITION = "__partition"
RECORD_COLUMNS = ("subject", "key", "payload", "headers", "timestamp_us")
REJECT_COLUMNS = ("file", "row", "reject")
COPY_COLUMNS = ("stream", "offset", "append_time_us")
"""Further inputs of copies."""


@dataclass(frozen=True, slots=True)
class Stage:
    """The form and the place of a staged chunk."""

    directory: Path
    staged_for: StagedFor
    target: Target
    answer: Path
    """The file from which the driver reads the names of staged files."""
    copy: CopyRule | None = None
    """If the records are copies: the rule, by which they get their origin headers."""
    paths: tuple[str, ...] = ()
    """If the records come from files: which files. Rows with a ``reject`` are no records."""


@dataclass(frozen=True, slots=True)
class StagedChunk:
    """The staged files."""

    files: Sequence[StagedFile]
    """In the order in which a commit names them."""
    rejects: Sequence[Reject]
    """In the order of files and rows."""

    @property
    def records(self) -> int:
        """The records of all files."""
        return sum(file.records for file in self.files)


def stage(
    frame: "DataFrame", plan: Stage, *, number: str, order: Sequence[str], at_once: int
) -> StagedChunk:
    """Stage the records of a frame.

    Args:
        frame: records, and the columns that the next two name.
        plan: how they are staged.
        number: expression of a number of the record, for those without a key.
        order: columns that put all records in their order.
        at_once: how many tasks run at once.

    Raises:
        DssError: a record breaks a rule.
    """
    from pyspark.sql import functions as f

    target = plan.target
    tasks = min(target.partitions, STAGING_TASKS_MAX, 2 * at_once)
    each = -(-target.partitions // tasks)
    copy_columns = () if plan.copy is None else COPY_COLUMNS
    columns = (*RECORD_COLUMNS, *copy_columns, *(REJECT_COLUMNS if plan.paths else ()))
    keep = dict.fromkeys((*columns, *order))
    hashed = "key_hash" if "key_hash" in frame.columns else HASH_SQL
    routed = frame.withColumn(HASH, f.expr(hashed)).withColumn(
        PARTITION, f.expr(partition_sql(target, HASH, number))
    )
    (
        routed.select(PARTITION, HASH, *keep)
        .repartitionById(tasks, f.expr(f"CAST({PARTITION} DIV {each} AS INT)"))
        .sortWithinPartitions(PARTITION, *order)
        .select(PARTITION, HASH, *columns)
        .write.format(STAGE)
        .option("plan", encoded(plan))
        .mode("append")
        .save()
    )
    return _answer(plan.answer)


def _answer(path: Path) -> StagedChunk:
    said = read_answer(path)
    rejects = sorted(Reject(*each) for each in said["rejects"])
    return StagedChunk([StagedFile(**each) for each in said["files"]], rejects)


def encoded(plan: Stage) -> str:
    """The plan as text."""
    return json.dumps(asdict(plan), default=str)


def decoded(text: str) -> Stage:
    """The reverse of `encoded`."""
    said = json.loads(text)
    copy, target = said["copy"], said["target"]
    return Stage(
        directory=Path(said["directory"]),
        staged_for=StagedFor(*said["staged_for"]),
        target=Target(**{**target, "router": Router(target["router"])}),
        answer=Path(said["answer"]),
        copy=None if copy is None else CopyRule(**copy),
        paths=tuple(said["paths"]),
    )
