"""``dssctl replays``: records of a topic, copied to another."""

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
    source_bytes,
    time_us,
)
from dssctl.engines import Conf, EngineName, Master, asks_size, chosen
from dssctl.tree import noun, settings_of

app = noun("replays")


@app.command(cls=MakingAndTelling)
def create(
    context: typer.Context,
    name: JobName,
    source: Source,
    target: Target,
    dead_letters: DeadLetters = None,
    start: Start = None,
    end: End = None,
    only: Only = None,
    key: Annotated[str | None, typer.Option(help="Records of this key alone.")] = None,
    header: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Records with this header alone; repeatable."),
    ] = None,
    subject: Annotated[
        str | None,
        typer.Option(
            metavar="TEMPLATE",
            help="The subjects of the copies: {subject}, {source}, {target}, {rest}. Else the "
            "target's name takes the place of the source's, or stands before.",
        ),
    ] = None,
    rate: Rate = None,
    chunk: Chunk = None,
    hops_max: HopsMax = 0,
    allow_loop: AllowLoop = False,
    drive: Drive = True,
    engine: EngineName = None,
    master: Master = None,
    conf: Conf = None,
    wait: Wait = False,
) -> None:
    """Copy records of a topic to another, each exactly once, in the order of their keys."""
    from dss_bulk.copy_rule import CopyRule
    from dss_bulk.replay_params import ReplayParams
    from dss_client.changes import CreateJob

    CopyRule(source, target, name, 1, subject)
    params = ReplayParams(
        subject=subject,
        key=None if key is None else key.encode().hex(),
        headers=tuple(map(_header, header or ())),
    )
    change = CreateJob(
        name,
        "replay",
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
    settings = settings_of(context)
    size = source_bytes(settings, change) if asks_size(settings, engine) else None
    driver = chosen(settings, engine, master, conf, size, starts=drive)
    make_job(context, change, driver, drive=drive, wait=wait)


def _header(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise typer.BadParameter(f"'{text}' is no header; write NAME=VALUE.")
    return name, value
