"""Bulk jobs and their chunks: what each field means, and how it is shown. No wire, no daemon."""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dss_core.counted import bytes_text
from dssctl.fields.model import Fields, items, moment, number, size, text, texts, truth
from dssctl.items import item_of
from dssctl.output import Column, Item, Kind
from dssctl.output.model import size as size_cell

if TYPE_CHECKING:
    from dss_client.job_values import Job, JobChunk

OUTPUT_SHOWN_MAX = 100
"""Characters that a table shows of a driver's note on a chunk: an audit notes some thousands."""


JOB: Fields = (
    text("name", "Its name."),
    number("job_id", "Its number, never reused."),
    text("kind", "replay, export, backfill, audit or transform."),
    text("engine", "The engine that drives it."),
    text("state", "active, paused, done, failed or cancelled."),
    text("source", "The topic that it reads.", optional=True),
    text("target", "The topic that it writes to.", optional=True),
    text("filter", "The records of the source that its driver takes.", optional=True),
    text("dead_letters", "The group whose dead letters of the source it reads.", optional=True),
    number("published", "Chunks that are published."),
    number("chunks", "Chunks of its manifest."),
    number("records", "Records in the chunks that are published."),
    size("bytes", "Bytes in the chunks that are published."),
    size("rate_bytes_s", "Limit of bytes published a second; none without a limit.", optional=True),
    text("driver", "Who drives it, or drove it last.", optional=True),
    truth("driver_lives", "Whether its driver holds the lease now."),
    number("epoch", "How many drivers have taken it."),
    text("said", "The last report of its driver.", optional=True),
    moment("said_at", "When the driver reported that.", optional=True),
    moment("created_at", "When it was made."),
    moment("ended_at", "When it ended.", optional=True),
    text("failure", "Why it failed or was cancelled.", optional=True),
    number("revision", "Rises with each change."),
    text("principal", "The principal that it acts for.", optional=True),
    texts("next", "What can be done about it now; of describe only.", absent=True),
    items("manifest", "JobChunk", "Its chunks; of describe --chunks only.", absent=True),
)

JOB_CHUNK: Fields = (
    number("chunk", "Its number, from 0 on; chunks are published in this order."),
    text("state", "published or open."),
    items("reads", "JobRange", "What it reads of the source."),
    text("input", "What it reads elsewhere, in the words of its driver.", optional=True),
    number("records_planned", "Records that it reads, at most."),
    size("bytes_planned", "Bytes that it reads, about."),
    number("records", "Records that were published.", optional=True),
    size("bytes", "Bytes that were published.", optional=True),
    items("wrote", "JobOffsets", "Where its records are in the target."),
    text("output", "What the driver noted of a chunk that it wrote elsewhere.", optional=True),
    moment("published_at", "When it was published.", optional=True),
)

JOB_LOG_LINE: Fields = (
    moment("at", "When; a line without a time of its own has that of the line before."),
    text("by", "driver or daemon."),
    text("text", "The line of the log."),
)

JOB_RANGE: Fields = (
    text("stream", "The stream."),
    number("start", "The first offset."),
    number("end", "The offset behind the last."),
)

JOB_OFFSETS: Fields = (
    number("partition", "The partition of the target."),
    number("start", "The first offset."),
    number("end", "The offset behind the last."),
)

_STATE_STYLES = {
    "active": "yellow",
    "paused": "yellow",
    "done": "green",
    "failed": "bold red",
    "cancelled": "yellow",
}


def _progress(item: Item, _now_us: int) -> str:
    published, chunks = item["published"], item["chunks"]
    assert isinstance(published, int)
    assert isinstance(chunks, int)
    return f"{published}/{chunks} {100 * published // chunks}%" if chunks else "0/0"


def _rate(item: Item, _now_us: int) -> str:
    rate = item["rate_bytes_s"]
    return f"{bytes_text(rate)}/s" if isinstance(rate, int) else "-"


def _driver(item: Item, _now_us: int) -> str:
    """The driver; for an unfinished job without a living one: none, or which one fell silent."""
    driver = item["driver"]
    if item["driver_lives"] or item["ended_at"] is not None:
        return str(driver or "-")
    return f"silent: {driver}" if driver else "none"


JOB_KIND = Kind(
    "Job",
    (
        Column("name", "NAME"),
        Column("kind", "KIND"),
        Column("state", "STATE", styles=_STATE_STYLES),
        Column("source", "SOURCE"),
        Column("target", "TARGET"),
        Column("published", "PROGRESS", right=True, cell=_progress),
        Column("chunks", "CHUNKS", only_csv=True),
        Column("records", "RECORDS", right=True),
        Column("bytes", "BYTES", right=True, cell=size_cell("bytes")),
        Column("rate_bytes_s", "RATE", right=True, cell=_rate),
        Column("created_at", "AGE", right=True),
        Column("driver", "DRIVER", cell=_driver),
        Column("driver_lives", "DRIVER-LIVES", only_csv=True),
        Column("job_id", "JOB-ID", right=True, wide=True),
        Column("engine", "ENGINE", wide=True),
        Column("filter", "FILTER", wide=True),
        Column("dead_letters", "DEAD-LETTERS", wide=True),
        Column("epoch", "EPOCH", right=True, wide=True),
        Column("principal", "PRINCIPAL", wide=True),
        Column("said", "SAID", wide=True),
        Column("said_at", "SAID-AGO", right=True, wide=True),
        Column("ended_at", "ENDED-AGO", right=True, wide=True),
        Column("revision", "REVISION", right=True, wide=True),
        Column("failure", "FAILURE", wide=True),
    ),
    lambda item: str(item["name"]),
)


def _reads(item: Item, now_us: int) -> str:
    return _ranges(item["reads"], "stream", " ") or str(item["input"] or "-")


def _wrote(item: Item, now_us: int) -> str:
    output = str(item["output"] or "-")
    if len(output) > OUTPUT_SHOWN_MAX:
        output = f"{output[:OUTPUT_SHOWN_MAX]}..."
    return _ranges(item["wrote"], "partition", ": ") or output


def _ranges(ranges: object, of: str, gap: str) -> str:
    """``orders/0/0 0..511, orders/0/1 0..498``: first and last offsets."""
    assert isinstance(ranges, Sequence)
    return ", ".join(
        f"{each[of]}{gap}{each['start']}..{each['end'] - 1}"
        for each in ranges
        if isinstance(each, Mapping)
    )


CHUNK_KIND = Kind(
    "JobChunk",
    (
        Column("chunk", "CHUNK", right=True),
        Column("state", "STATE", styles={"published": "green"}),
        Column("records_planned", "PLANNED", right=True),
        Column("bytes_planned", "PLANNED-BYTES", right=True, cell=size_cell("bytes_planned")),
        Column("records", "RECORDS", right=True),
        Column("bytes", "BYTES", right=True, cell=size_cell("bytes")),
        Column("published_at", "AGE", right=True),
        Column("reads", "READS", cell=_reads),
        Column("wrote", "WROTE", cell=_wrote),
        Column("input", "INPUT", only_csv=True),
        Column("output", "OUTPUT", only_csv=True),
    ),
    lambda item: str(item["chunk"]),
)


def job_item(job: "Job") -> Item:
    """A job as it stands."""
    lives = job.driver_lives and not job.has_ended
    return item_of("Job", job, driver_lives=lives)


def chunk_item(chunk: "JobChunk") -> Item:
    """A chunk of a manifest, and what became of it."""
    result = chunk.result
    ranges = {} if result is None else result.ranges
    return item_of(
        "JobChunk",
        chunk,
        chunk=chunk.number,
        state="open" if result is None else "published",
        reads=[item_of("JobRange", each) for each in chunk.ranges],
        records=None if result is None else result.records,
        bytes=None if result is None else result.bytes,
        wrote=[
            {"partition": partition, "start": start, "end": end}
            for partition, (start, end) in sorted(ranges.items())
        ],
        output=None if result is None else result.output or None,
    )


def what_next(job: "Job") -> list[str]:
    """What can be done about a job as it stands, in sentences."""
    name, chunk = job.name, f"chunk {job.published} of {job.chunks}"
    drive = f"dssctl jobs drive {name}"
    match job.state:
        case "done" if job.kind == "audit":
            steps = [
                f"See what it found: dssctl audits show {name}",
                f"Forget it, with what it found: dssctl jobs rm {name}",
            ]
        case "done" if job.kind == "export":
            folder = json.loads(job.params or "{}").get("folder", "its folder")
            steps = [f"All of it is below {folder}. Forget the job: dssctl jobs rm {name}"]
        case "done":
            steps = [f"All of it is published. Forget it: dssctl jobs rm {name}"]
        case "failed" | "cancelled":
            steps = [
                f"{job.published} of {job.chunks} chunks are published and stay; nothing goes on.",
                "For the rest, fix what stopped this job, then make another one.",
                f"Forget it: dssctl jobs rm {name}",
            ]
        case "paused":
            steps = [f"It publishes nothing until then: dssctl jobs resume {name}"]
            if not job.driver_lives:
                steps.append(f"Nobody drives it; a driver begins at {chunk}: {drive}")
        case _ if job.driver_lives:
            steps = [f"It is driven. Wait for its end: dssctl jobs wait {name}"]
        case _ if job.driver:
            steps = [
                f"{job.driver} fell silent at {chunk}; nothing is lost, or published twice.",
                f"Another driver takes it over, with epoch {job.epoch + 1}: {drive}",
            ]
        case _:
            steps = [f"No driver has taken it yet. Start one here: {drive}"]
    return steps
