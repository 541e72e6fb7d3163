"""Bulk jobs, the chunks of one, and its log.

Invariant: a job that stands still says why, in words, so no colour is needed to see it.
"""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from dssctl.output.escape import escaped
from dssctl.top.lists.details import DetailRow, detail_rows, details, numbered
from dssctl.top.lists.listing import Column, Listing, Pen, Scene
from dssctl.top.model.answers import LogLine
from dssctl.top.model.courses import Course, Pace, left_ms, pace
from dssctl.top.model.places import Ordering, Place
from dssctl.top.paint import amounts
from dssctl.top.paint.charts import gauge
from dssctl.top.paint.spans import Look

if TYPE_CHECKING:
    from dss_client import Job, JobChunk

_STATES: Mapping[str, Look] = {"active": "good", "paused": "warn", "failed": "bad"}
_BAR = 8
_AT_ITS_BOUND = 0.9
"""The part of its rate bound from which a job is held up by that bound: it would be faster
without."""


class JobRow(NamedTuple):
    """A job, and its course."""

    job: "Job"
    pace: Pace | None
    left_ms: int | None
    """Time until it is done at its present pace."""
    params: str = ""

    @property
    def share(self) -> float:
        """The share of its chunks that are published."""
        return self.job.published / self.job.chunks if self.job.chunks else 0.0


def job_row(job: "Job", course: Course, params: str = "") -> JobRow:
    """A job with the pace of its course."""
    went = pace(course)
    return JobRow(job, went, left_ms(job, went), params or job.params)


def job_rows(scene: Scene) -> Mapping[str, JobRow]:
    """All jobs."""
    courses = scene.picture.courses
    return {
        name: job_row(job, courses.get(job.job_id, ()))
        for name, job in scene.picture.items.jobs.items()
    }


def held_up(row: JobRow) -> str:
    """Why it stands still or goes no faster; empty if nothing holds it up."""
    job = row.job
    if job.has_ended:
        return job.failure
    if job.state == "paused":
        return "paused"
    if not job.driver_lives:
        return f"silent: {job.driver}" if job.driver else "no driver yet"
    waits = _waits(job.said)
    if waits:
        return waits
    fast = row.pace is not None and row.pace.bytes_s >= _AT_ITS_BOUND * job.rate_bytes_s
    return "its rate bound" if job.rate_bytes_s and fast else ""


def _waits(said: str) -> str:
    """What it waits for, from its driver's report."""
    try:
        found = json.loads(said or "{}")
    except ValueError:
        return ""
    return str(found.get("waits", "")) if isinstance(found, dict) else ""


def is_job_faulty(row: JobRow) -> bool:
    """Whether an operator should look: it failed, or stands still."""
    job = row.job
    if job.has_ended:
        return job.state == "failed"
    return job.state == "paused" or not job.driver_lives or bool(_waits(job.said))


def job_look(job: "Job") -> Look:
    """The look of its state."""
    return _STATES.get(job.state, "dim")


def progress(row: JobRow, width: int, pen: Pen) -> str:
    """A bar, and the count of chunks."""
    chunks = f"{row.job.published}/{row.job.chunks}"
    return f"{gauge(row.share, width, pen.glyphs)} {chunks}"


def bound(job: "Job") -> str:
    """Its bound on bytes a second."""
    return f"{amounts.size(job.rate_bytes_s)}/s" if job.rate_bytes_s else "-"


def records_s(row: JobRow) -> str:
    """Its rate; if it has ended, the average over its life."""
    if row.pace is not None:
        return amounts.rate(row.pace.records_s)
    job = row.job
    if job.ended_at_ms is None or job.ended_at_ms <= job.created_at_ms:
        return "-"
    return amounts.rate(job.records * 1_000 / (job.ended_at_ms - job.created_at_ms))


def left(row: JobRow) -> str:
    """Time until it is done."""
    return "-" if row.left_ms is None else amounts.span(row.left_ms)


def driver(job: "Job") -> str:
    """The driver, present or last."""
    return escaped(job.driver) or "-"


def _between(job: "Job") -> str:
    parts = [part for part in (job.source, job.target) if part]
    return escaped(" to ".join(parts)) + (f", only {escaped(job.filter)}" if job.filter else "")


def job_facts(row: JobRow, pen: Pen) -> Sequence[tuple[str, str]]:
    """All that is known of a job: its state, then its plan."""
    # Its sentences are those of `jobs describe`; that module is loaded once a job is shown.
    from dssctl.nouns.jobs import what_next

    job = row.job
    average = row.pace.bytes_s if row.pace else 0.0
    percent = f"{100 * row.share:.0f}%"
    return [
        ("job", escaped(job.name)),
        ("state", ": ".join(filter(None, (job.state, escaped(job.failure))))),
        ("progress", f"{progress(row, 2 * _BAR, pen)} chunks, {percent}"),
        ("held up by", escaped(held_up(row)) or "-"),
        ("records", f"{job.records} in {amounts.size(job.bytes)}"),
        ("rate", f"{records_s(row)} records/s, {amounts.size(round(average))}/s"),
        ("rate bound", bound(job)),
        ("done in", left(row)),
        ("driver", f"{driver(job)}, epoch {job.epoch}" if job.epoch else "none yet"),
        ("it said", f"{escaped(job.said) or '-'}, {amounts.age(job.said_at_ms, pen.now_ms)} ago"),
        *(("next", escaped(each)) for each in what_next(job)),
        ("copies", f"{job.kind} of {_between(job)}"),
        ("plan", f"{job.chunks} chunks, engine {escaped(job.engine)}, hops {job.hops_max}"),
        ("told besides", escaped(row.params) or "-"),
        ("created", amounts.told_at(job.created_at_ms, pen.now_ms)),
        ("ended", amounts.moment(job.ended_at_ms)),
        ("number", f"{job.job_id}, revision {job.revision}"),
    ]


JOBS: Listing[JobRow] = Listing(
    title="Jobs",
    columns=(
        Column("name", "JOB", 12, lambda row: row.job.name, grows=True, rises=True),
        Column("kind", "KIND", 9, lambda row: row.job.kind, rises=True),
        Column("state", "STATE", 9, lambda row: row.job.state, look=lambda row: job_look(row.job),
            rises=True),
        Column("progress", "CHUNKS", 18, lambda row: row.share,
            lambda row, pen: progress(row, _BAR, pen)),
        Column("rate", "REC/S", 6, lambda row: row.pace.records_s if row.pace else None,
            lambda row, _pen: records_s(row), right=True),
        Column("left", "LEFT", 7, lambda row: row.left_ms, lambda row, _pen: left(row), right=True,
            rank=3, rises=True),
        Column("bound", "BOUND", 8, lambda row: row.job.rate_bytes_s or None,
            lambda row, _pen: bound(row.job), right=True, rank=4),
        Column("records", "RECORDS", 7, lambda row: row.job.records, right=True, rank=5),
        Column("age", "AGE", 7, lambda row: -row.job.created_at_ms,
            lambda row, pen: amounts.age(row.job.created_at_ms, pen.now_ms), right=True, rank=2),
        Column("driver", "DRIVER", 12, lambda row: row.job.driver,
            lambda row, _pen: driver(row.job), grows=True, rank=6, rises=True),
        Column("held", "HELD UP BY", 14, held_up, grows=True,
            look=lambda row: "warn" if is_job_faulty(row) else "dim", rises=True),
    ),
    rows=job_rows,
    order=Ordering("age", descending=False),
    opens=lambda _place, key, _row: Place("job", name=key),
    fault=is_job_faulty,
    facts=job_facts,
    empty="no bulk job: dssctl replays create NAME --from TOPIC --to TOPIC2",
)  # fmt: skip


def _state(chunk: "JobChunk") -> str:
    return "open" if chunk.result is None else "published"


def _reads(chunk: "JobChunk") -> str:
    ranges = (f"{each.stream} {each.start}..{each.end - 1}" for each in chunk.ranges)
    return escaped(", ".join(ranges) or chunk.input) or "-"


def _wrote(chunk: "JobChunk") -> str:
    if chunk.result is None:
        return "-"
    ranges = (f"{to}: {start}..{end - 1}" for to, (start, end) in chunk.result.ranges.items())
    return escaped(", ".join(ranges) or chunk.result.output) or "-"


def _records(chunk: "JobChunk") -> int | None:
    return None if chunk.result is None else chunk.result.records


def _chunk_facts(chunk: "JobChunk", pen: Pen) -> Sequence[tuple[str, str]]:
    planned = f"{chunk.records_planned} records, about {amounts.size(chunk.bytes_planned)}"
    facts = [
        ("chunk", str(chunk.number)),
        ("state", _state(chunk)),
        ("planned", planned),
        ("reads", _reads(chunk)),
    ]
    if chunk.result is not None:
        result = chunk.result
        facts += [
            ("published", f"{result.records} records in {amounts.size(result.bytes)}"),
            ("at", amounts.told_at(chunk.published_at_ms or 0, pen.now_ms)),
            ("wrote", _wrote(chunk)),
            ("it said", escaped(result.output) or "-"),
        ]
    return facts


CHUNKS: "Listing[JobChunk]" = Listing(
    title="Chunks",
    columns=(
        Column("chunk", "CHUNK", 6, lambda each: each.number, lambda each, _pen: str(each.number),
            right=True, rises=True),
        Column("state", "STATE", 9, _state, look=lambda each: "good" if each.result else "dim",
            rises=True),
        Column("planned", "PLANNED", 8, lambda each: each.records_planned, right=True),
        Column("records", "RECORDS", 8, _records, right=True),
        Column("bytes", "BYTES", 7, lambda each: each.result.bytes if each.result else None,
            lambda each, _pen: amounts.size(each.result.bytes) if each.result else "-", right=True,
            rank=2),
        Column("age", "AGE", 7,
            lambda each: -each.published_at_ms if each.published_at_ms else None,
            lambda each, pen: amounts.age(each.published_at_ms, pen.now_ms), right=True, rank=1),
        Column("reads", "READS", 16, _reads, grows=True, rises=True),
        Column("wrote", "WROTE", 16, _wrote, grows=True, rank=3, rises=True),
    ),
    rows=lambda scene: {
        f"{each.number:06}": each for each in (scene.answer.chunks if scene.answer else ())
    },
    order=Ordering("chunk", descending=False),
    facts=_chunk_facts,
    empty="it has no chunk",
)  # fmt: skip

LOG: Listing[LogLine] = Listing(
    title="Log",
    columns=(
        Column("at", "AT", 8, lambda each: each.at_ms,
            lambda each, _pen: amounts.clock(each.at_ms)),
        Column("by", "BY", 6, lambda each: each.by,
            look=lambda each: "accent" if each.by == "daemon" else "", rises=True),
        Column("text", "WHAT", 30, lambda each: each.text, grows=True, rises=True),
    ),
    rows=lambda scene: {
        f"{number:06}": each for number, each in enumerate(scene.answer.log if scene.answer else ())
    },
    order=Ordering("at"),
    facts=lambda each, _pen: [
        ("at", amounts.moment(each.at_ms)), ("by", each.by), ("what", escaped(each.text))
    ],
    empty="nothing was said of it on this machine",
)  # fmt: skip


def row_at(scene: Scene) -> JobRow | None:
    """The job of a place."""
    job = scene.picture.items.jobs.get(scene.place.name)
    if job is None:
        return None
    params = scene.answer.params if scene.answer else ""
    return job_row(job, scene.picture.courses.get(job.job_id, ()), params)


def _fact_rows(scene: Scene) -> Mapping[str, DetailRow]:
    row = row_at(scene)
    return {} if row is None else numbered(detail_rows(job_facts(row, scene.pen), scene.width))


JOB_FACTS = details("Plan", _fact_rows, "this job is not there any more")
