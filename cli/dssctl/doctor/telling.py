"""Printing findings, and the exit code that follows from them."""

from collections.abc import Sequence
from typing import Annotated

import typer

from dss_core.counted import counted
from dss_core.errors import ExitCode
from dssctl.doctor.finding import Finding, Level
from dssctl.output import Column, Item, Kind, note, show_list
from dssctl.settings import Settings

OnlyTrouble = Annotated[bool, typer.Option("--only-trouble", help="Leave out what is well.")]
Strict = Annotated[bool, typer.Option("--strict", help="Exit with 1 for warnings, too.")]

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


def tell(
    settings: Settings, findings: Sequence[Finding], *, only_trouble: bool, strict: bool
) -> None:
    """Print them.

    Raises:
        typer.Exit: there are problems, or with `strict` warnings.
    """
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
