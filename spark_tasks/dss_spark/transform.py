"""Transforms: a user's own function between a range of one topic and another topic.

    def mended(records: DataFrame) -> DataFrame: ...

It is called for each chunk, with the records that the job reads: the columns of the data source
`dss`, of dead letters those of them too, and ``subject`` as it will be in the target. It returns
records with the columns `NEEDED`;
``stream``, ``offset`` and ``append_time`` say which record each came from, so that its origin and
its place among those of its key are known.

Invariant: the guarantees of a replay, for a function that gives the same for the same records.
"""

from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, cast

from dss_bulk.copy_rule import CopyRule
from dss_bulk.selection import RecordSelection
from dss_bulk.transform_params import TransformParams
from dss_bulk.work import ChunkDone
from dss_client.job_values import Granted, JobChunk
from dss_core.errors import FunctionRefused
from dss_core.filters import TopicFilter
from dss_spark.ranges import ORDER, read_ranges
from dss_spark.selection import literal
from dss_spark.source.schema import COLUMNS, DEAD_COLUMNS
from dss_spark.staging import Stage, stage
from dss_spark.work import OnSpark, target_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

NEEDED = {name: kind for name, kind in COLUMNS.items() if name != "key_hash"}
"""All columns except those that follow from the key, which a function may change."""
NEVER_NULL = ("stream", "offset", "subject", "payload", "time", "append_time")
AS_IT_IS = "{subject}"
"""The subject template of copies whose subject the function has seen."""


class TransformOnSpark:
    """Reads, calls the function, routes and stages."""

    def __init__(self, on: OnSpark, granted: Granted, endpoint: str) -> None:
        assert granted.target is not None, "a transform writes to a topic"
        job, target = granted.job, granted.target
        self._on = on
        self._granted = granted
        self._endpoint = endpoint
        self._target = target_of(granted)
        self._rule = CopyRule(job.source, target.topic, job.name, job.hops_max, AS_IT_IS)
        self._selection = RecordSelection(TopicFilter.parse(job.filter) if job.filter else None)
        self._function = function_of(TransformParams.from_json(job.params))

    async def chunk(self, chunk: JobChunk, *, last: bool) -> ChunkDone:
        """Stage what the function makes of its records."""
        return await self._on.run(lambda: self._staged(chunk))

    def stop(self) -> None:
        """End all work on the cluster."""
        self._on.stop()

    def discard(self) -> None:
        """Do nothing: the daemon sweeps staged files."""

    def _staged(self, chunk: JobChunk) -> ChunkDone:
        dead_letters = self._granted.job.dead_letters
        read = read_ranges(
            self._on.spark,
            self._endpoint,
            chunk.ranges,
            self._selection,
            dead_letters=dead_letters,
            tells=True,
        )
        columns = (*NEEDED, *(DEAD_COLUMNS if dead_letters else ()))
        given = read.withColumn("subject", _subject(self._rule)).select(*columns)
        plan = Stage(
            self._granted.staging,
            self._granted.staged_for(chunk.number),
            self._target,
            self._on.answer(chunk.number),
            copy=self._rule,
        )
        made = self._function(given)
        order = (*ORDER, "__tie")
        done = stage(made, plan, number="offset", order=order, at_once=self._on.at_once)
        return ChunkDone(done.files, records=done.records)


def function_of(params: TransformParams) -> "Callable[[DataFrame], DataFrame]":
    """The function of a transform; its source is executed here.

    Raises:
        FunctionRefused: its source cannot be executed, or defines something else.
    """
    named = f"{params.file}:{params.function}"
    # Its module cannot be imported, so its functions go to the tasks by value.
    names: dict[str, object] = {"__name__": "dss_transform"}
    try:
        exec(compile(params.text, params.file, "exec"), names)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise FunctionRefused(function=named, reason=reason) from error
    found = names.get(params.function)
    if not isinstance(found, FunctionType):
        raise FunctionRefused(function=named, reason="it is no function")

    def called(records: "DataFrame") -> "DataFrame":
        try:
            made = found(records)
        except Exception as error:
            reason = f"{type(error).__name__}: {str(error).splitlines()[0]}"
            raise FunctionRefused(function=named, reason=reason) from error
        _require_columns(made, named)
        return _as_records(cast("DataFrame", made), named)

    return called


def _require_columns(made: object, named: str) -> None:
    columns = getattr(made, "columns", None)
    if columns is None:
        reason = f"it returned {type(made).__name__}, and no DataFrame"
        raise FunctionRefused(function=named, reason=reason)
    missing = [name for name in NEEDED if name not in columns]
    if missing:
        reason = f"what it returned has no column {', '.join(missing)}"
        raise FunctionRefused(function=named, reason=reason)


def _subject(rule: CopyRule) -> "Column":
    """The subject of a copy, as in `CopyRule` without a template."""
    from pyspark.sql import functions as f

    source, target = literal(rule.source), literal(rule.target)
    rest = f"substring(subject, {len(rule.source) + 1})"
    below = literal(rule.source + "/")
    return f.expr(
        f"CASE WHEN subject IN ({source}, {below}) THEN {target} "
        f"WHEN startswith(subject, {below}) THEN concat({target}, {rest}) "
        f"ELSE concat({target}, '/', subject) END"
    )


def _as_records(made: "DataFrame", named: str) -> "DataFrame":
    """The result of a function, with the types of records and a total order."""
    from pyspark.errors import AnalysisException

    try:
        records = made.selectExpr(*(_value(name, kind, named) for name, kind in NEEDED.items()))
    except AnalysisException as error:
        reason = f"what it returned is no record: {str(error).splitlines()[0]}"
        raise FunctionRefused(function=named, reason=reason) from error
    return records.selectExpr(
        "*",
        "unix_micros(time) AS timestamp_us",
        "unix_micros(append_time) AS append_time_us",
        "CAST(split_part(stream, '/', 2) AS INT) AS generation",
        "xxhash64(subject, key, payload) AS __tie",
    )


def _value(name: str, kind: str, named: str) -> str:
    """A column in the type that records have; a null where none is allowed ends the work."""
    value = f"CAST({name} AS {kind})"
    if name in NEVER_NULL:
        said = literal(f"what {named} returned has a record without {name}")
        value = f"IF({name} IS NULL, CAST(raise_error({said}) AS {kind}), {value})"
    return f"{value} AS {name}"
