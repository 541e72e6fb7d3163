"""Replays on Spark: records of a range, copied to another topic.

Invariant: the same copies as in the local engine, in the order of their keys.
"""

from dss_bulk.replay_params import ReplayParams, copy_rule_of, selection_of
from dss_bulk.work import ChunkDone
from dss_client.job_values import Granted, JobChunk
from dss_spark.ranges import ORDER, read_ranges
from dss_spark.staging import Stage, stage
from dss_spark.work import OnSpark, target_of


class ReplayOnSpark:
    """Reads, selects, routes and stages copies."""

    def __init__(self, on: OnSpark, granted: Granted, endpoint: str) -> None:
        params = ReplayParams.from_json(granted.job.params)
        self._on = on
        self._granted = granted
        self._endpoint = endpoint
        self._target = target_of(granted)
        self._rule = copy_rule_of(granted, params)
        self._selection = selection_of(granted, params)

    async def chunk(self, chunk: JobChunk, *, last: bool) -> ChunkDone:
        """Stage the copies of its records."""
        return await self._on.run(lambda: self._staged(chunk))

    def stop(self) -> None:
        """End all work on the cluster."""
        self._on.stop()

    def discard(self) -> None:
        """Do nothing: the daemon sweeps staged files."""

    def _staged(self, chunk: JobChunk) -> ChunkDone:
        frame = read_ranges(
            self._on.spark,
            self._endpoint,
            chunk.ranges,
            self._selection,
            dead_letters=self._granted.job.dead_letters,
            tells=True,
        )
        plan = Stage(
            self._granted.staging,
            self._granted.staged_for(chunk.number),
            self._target,
            self._on.answer(chunk.number),
            copy=self._rule,
        )
        done = stage(frame, plan, number="offset", order=ORDER, at_once=self._on.at_once)
        return ChunkDone(done.files, records=done.records)
