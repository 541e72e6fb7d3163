"""``dssctl bench``: how fast the daemon at hand is, seen from here."""

import asyncio
from typing import Annotated

import typer

from dss_core.counted import bytes_text
from dss_core.errors import NotInProtectedContext
from dss_core.limits import FRAME_RECORDS_MAX, PARTITIONS_MAX, RECORD_BYTES_MAX
from dss_core.times import parse_span_ms
from dssctl.bench.running import BenchPlan, measured
from dssctl.impact import Impact
from dssctl.limits import BENCH_SINGLE_RECORDS
from dssctl.output import Cell, Column, Item, Kind, note, show_list
from dssctl.progress import looking
from dssctl.quantities import size_bytes
from dssctl.tree import Command, settings_of, verb_alone

BENCH_FRAME_RECORDS = 500
"""How many are handed over at once: half a usual frame of small records."""


BENCH_RECORDS = 100_000
"""Some seconds of work, enough for a rate that means something."""


app = verb_alone("bench")


class Benching(Command):
    """It publishes, so a read-only context refuses it."""

    impact = Impact.WRITE


def _milliseconds(field: str) -> Cell:
    def cell(item: Item, _now_us: int) -> str:
        value = item[field]
        return "-" if value is None else f"{value:.2f}"

    return cell


def _rate(item: Item, _now_us: int) -> str:
    return f"{bytes_text(int(str(item['bytes_per_s'])))}/s"


BENCH_KIND = Kind(
    "BenchPart",
    (
        Column("part", "PART"),
        Column("records", "RECORDS", right=True),
        Column("seconds", "SECONDS", right=True),
        Column("records_per_s", "RECORDS/S", right=True),
        Column("bytes_per_s", "PAYLOAD", right=True, cell=_rate),
        Column("p50_ms", "P50-MS", right=True, cell=_milliseconds("p50_ms")),
        Column("p90_ms", "P90-MS", right=True, cell=_milliseconds("p90_ms"), wide=True),
        Column("p99_ms", "P99-MS", right=True, cell=_milliseconds("p99_ms")),
        Column("max_ms", "MAX-MS", right=True, cell=_milliseconds("max_ms")),
    ),
    lambda item: str(item["part"]),
)


@app.command(cls=Benching)
def bench(
    context: typer.Context,
    records: Annotated[
        int, typer.Option("-n", "--records", metavar="N", min=1, help="To publish and take back.")
    ] = BENCH_RECORDS,
    size: Annotated[
        str, typer.Option(metavar="SIZE", help="The size of each payload: 100B or 4K.")
    ] = "100B",
    frame: Annotated[
        int,
        typer.Option(
            metavar="N", min=1, max=FRAME_RECORDS_MAX, help="Records handed over at once."
        ),
    ] = BENCH_FRAME_RECORDS,
    partitions: Annotated[
        int, typer.Option(metavar="N", min=1, max=PARTITIONS_MAX, help="Streams of the topic.")
    ] = 1,
    durability: Annotated[str, typer.Option(metavar="HOW", help="sync or os.")] = "sync",
    single: Annotated[
        int, typer.Option(metavar="N", min=0, help="Records one by one, for latencies.")
    ] = BENCH_SINGLE_RECORDS,
    span: Annotated[
        str, typer.Option("--for", metavar="SPAN", help="Publish at most this long.")
    ] = "20s",
) -> None:
    """Measure publishing and delivery with a topic and a group of its own, removed at the end.

    publish: frames until they are stored. deliver: through a group until all came. ack and
    end-to-end: one record after the other, until it was stored and until it was here.
    """
    settings = settings_of(context)
    if settings.context is not None and settings.context.protected:
        name = settings.context.protected
        raise NotInProtectedContext(command=context.command_path, context=name)
    payload_bytes = size_bytes(size)
    if payload_bytes > RECORD_BYTES_MAX:
        raise typer.BadParameter(f"a record has at most {RECORD_BYTES_MAX} bytes.", ctx=context)
    plan = BenchPlan(
        records, payload_bytes, frame, partitions, durability, single, parse_span_ms(span) / 1_000
    )
    with looking(settings, "bench") as show:
        parts = asyncio.run(measured(settings, plan, show))
    show_list(settings, BENCH_KIND, [part.item for part in parts])
    if parts[0].records < records:
        note(settings, f"{span} were over after {parts[0].records:,} of {records:,} records")
    note(settings, "one Python process publishes and consumes: the daemon can do more")
