"""``dssctl transforms``: a user's own function between a range of a topic and another topic."""

from typing import Annotated

import typer

from dssctl.driving import (
    AllowLoop,
    Chunk,
    DeadLetters,
    Drive,
    End,
    HopsMax,
    JobName,
    MakingAndTelling,
    Only,
    Rate,
    Source,
    Start,
    Target,
    Wait,
    make_job,
    size_or_usual,
    time_us,
)
from dssctl.engines import SPARK, Conf, Master, chosen
from dssctl.tree import noun, settings_of

app = noun("transforms")


@app.command(cls=MakingAndTelling)
def create(
    context: typer.Context,
    name: JobName,
    source: Source,
    target: Target,
    function: Annotated[
        str,
        typer.Option(metavar="FILE.py:NAME", help="It takes and returns a DataFrame of records."),
    ],
    dead_letters: DeadLetters = None,
    start: Start = None,
    end: End = None,
    only: Only = None,
    rate: Rate = None,
    chunk: Chunk = None,
    hops_max: HopsMax = 0,
    allow_loop: AllowLoop = False,
    drive: Drive = True,
    master: Master = None,
    conf: Conf = None,
    wait: Wait = False,
) -> None:
    """Run a function over the records of a topic, on Spark, and publish what it makes of them.

    It is called for each chunk. What it returns has the columns that it got; each record is
    published exactly once, in the order of its key. The text of the file is kept with the job.
    """
    from dss_bulk.transform_params import TransformParams
    from dss_client.changes import CreateJob

    params = TransformParams.of_file(function)
    change = CreateJob(
        name,
        "transform",
        source=source,
        target=target,
        dead_letters=dead_letters or "",
        start_us=time_us(start),
        end_us=time_us(end),
        filter=only or "",
        rate_bytes_s=size_or_usual(rate),
        chunk_bytes=size_or_usual(chunk),
        hops_max=hops_max,
        allow_loop=allow_loop,
        params=params.to_json(),
    )
    driver = chosen(settings_of(context), SPARK, master, conf, starts=drive)
    make_job(context, change, driver, drive=drive, wait=wait)
