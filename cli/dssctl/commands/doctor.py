"""``dssctl doctor``: what is wrong, from the client to the groups, and what helps."""

import asyncio
from typing import Annotated

import typer

from dss_core.counted import counted
from dss_core.errors import ExitCode
from dssctl.doctor.facts import gathered
from dssctl.doctor.finding import Finding, Level
from dssctl.doctor.rules import findings_of
from dssctl.output import Column, Item, Kind, note, show_list
from dssctl.tree import Command, settings_of, verb_alone

app = verb_alone("doctor")

FINDING_KIND = Kind(
    "Finding",
    (
        Column(
            "level",
            "STATE",
            styles={"ok": "green", "warning": "bold yellow", "problem": "bold red"},
        ),
        Column("check", "CHECK"),
        Column("text", "FOUND"),
        Column("remedy", "WHAT HELPS"),
    ),
    lambda item: str(item["check"]),
)


@app.command(cls=Command)
def doctor(
    context: typer.Context,
    only_trouble: Annotated[
        bool, typer.Option("--only-trouble", help="Leave out what is well.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 for warnings, too.")
    ] = False,
) -> None:
    """Look at client, daemon, disk, log and groups; exit code 1 where there are problems."""
    settings = settings_of(context)
    findings = findings_of(asyncio.run(gathered(settings)))
    shown = [each for each in findings if each.level is not Level.OK or not only_trouble]
    show_list(settings, FINDING_KIND, [_item(each) for each in shown])
    problems = sum(each.level is Level.PROBLEM for each in findings)
    warnings = sum(each.level is Level.WARNING for each in findings)
    note(settings, f"{counted(problems, 'problem')}, {counted(warnings, 'warning')}")
    if problems or (strict and warnings):
        raise typer.Exit(ExitCode.FAILED)


def _item(finding: Finding) -> Item:
    return {
        "level": finding.level.value,
        "check": finding.check,
        "text": finding.text,
        "remedy": finding.remedy or None,
    }
