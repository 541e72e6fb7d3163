"""``dssctl support``: a bundle for the person who helps, and what it tells."""

import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from dssctl.doctor.telling import FINDING_KIND, OnlyTrouble, Strict, tell
from dssctl.output import Column, Kind, Section, note, show_one
from dssctl.output.model import size
from dssctl.progress import looking
from dssctl.tree import Command, noun, settings_of, showing

app = noun("support")

BUNDLE_KIND = Kind(
    "SupportBundle",
    (
        Column("file", "FILE"),
        Column("bytes", "SIZE", cell=size("bytes")),
        Column("names_hidden", "NAMES-HIDDEN"),
    ),
    lambda item: str(item["file"]),
)
ENTRY_KIND = Kind(
    "SupportEntry",
    (
        Column("name", "NAME"),
        Column("bytes", "SIZE", right=True, cell=size("bytes")),
        Column("cut", "CUT"),
        Column("what", "WHAT"),
    ),
    lambda item: str(item["name"]),
)
MISSING_KIND = Kind(
    "SupportMissing",
    (Column("name", "NAME"), Column("why", "WHY")),
    lambda item: str(item["name"]),
)


@app.command(cls=Command)
def gather(
    context: typer.Context,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="dss-support-HOST-TIME.tar.gz where absent."),
    ] = None,
    hide_names: Annotated[
        bool,
        typer.Option(
            "--hide-names", help="Take out names of topics, groups, clients, users, hosts."
        ),
    ] = False,
    log: Annotated[
        list[Path] | None,
        typer.Option("--log", metavar="PATH", help="Add the end of this log; may be repeated."),
    ] = None,
) -> None:
    """Write a file with the state of everything, for the person who helps; never a payload."""
    from dssctl.support.gathering import gather

    settings = settings_of(context)
    path = file or Path(_default_name(settings.clock_us(), hide_names=hide_names))
    with looking(settings, "gathering") as show:
        item = gather(settings, path, log or (), hide_names=hide_names, show=show)
    sections = [Section("entries", ENTRY_KIND)]
    if item["missing"]:
        sections.append(Section("missing", MISSING_KIND))
    show_one(settings, BUNDLE_KIND, item, sections)
    if not hide_names:
        note(settings, "names of topics, groups and clients are in it; --hide-names takes them out")


@app.command(cls=showing(FINDING_KIND))
def analyze(
    context: typer.Context,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The file that support gather wrote.")
    ],
    only_trouble: OnlyTrouble = False,
    strict: Strict = False,
) -> None:
    """Report what is wrong from a bundle, without a daemon; exit code 1 where there are problems.

    What the doctor found where it was gathered, whether the bundle is whole, and which errors its
    logs and events name.
    """
    from dssctl.support.analyzing import findings_in
    from dssctl.support.reading import read_bundle

    findings = findings_in(read_bundle(file))
    tell(settings_of(context), findings, only_trouble=only_trouble, strict=strict)


def _default_name(now_us: int, *, hide_names: bool) -> str:
    host = "" if hide_names else f"{platform.node()}-"
    at = datetime.fromtimestamp(now_us // 1_000_000, UTC)
    return f"dss-support-{host}{at:%Y%m%dT%H%M%SZ}.tar.gz"
