"""The command ``dssd check``: locks the directory, checks it, and prints the findings.

stdout gets the findings, one per line, or one JSON document. stderr gets a summary for people and,
on a terminal, the progress of a deep check. Exit codes: 0 no damage, 1 there is damage.
"""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

from dss_core.counted import counted
from dss_core.errors import DiskFailed, ExitCode
from dssd.check.directory import checked
from dssd.check.findings import Report, Weight
from dssd.data_directory import DataDirectory

API_VERSION = "dssd/v1"

Progress = tuple[Callable[[int], None], Callable[[int], None]]
"""Called with the total of bytes, and with each number of bytes that were checked."""


def check(path: Path, *, deep: bool, as_json: bool) -> ExitCode:
    """Check a data directory and print what was found.

    Raises:
        DataDirectoryLocked: a daemon runs on it.
        DataDirectoryNewer: a newer version wrote it.
        IllegalConfig: it is not a data directory.
        DiskFailed: a file cannot be read.
    """
    with DataDirectory.existing(path) as directory, _shown(deep, sys.stderr) as (begun, advanced):
        try:
            report = checked(directory, deep=deep, begun=begun, advanced=advanced)
        except OSError as error:
            raise DiskFailed(reason=f"check: {error}") from error
    if as_json:
        sys.stdout.write(f"{json.dumps(document(report), indent=2)}\n")
    else:
        _print(report)
    return ExitCode.FAILED if report.count(Weight.DAMAGE) else ExitCode.OK


def document(report: Report) -> dict[str, Any]:
    """The report as a JSON document."""
    item = {
        "directory": str(report.directory),
        "deep": report.deep,
        "damaged": report.count(Weight.DAMAGE) > 0,
        "topics": report.topics,
        "segments": report.segments,
        "records": report.records,
        "bytesRead": report.bytes_read,
        "findings": [asdict(finding) for finding in report.findings],
    }
    return {"apiVersion": API_VERSION, "kind": "Check", "item": item}


def _print(report: Report) -> None:
    for finding in report.findings:
        sys.stdout.write(f"{finding.weight}: {finding.where}: {finding.what}\n")
    damages, notes = report.count(Weight.DAMAGE), report.count(Weight.NOTE)
    looked = (
        f"{counted(report.topics, 'topic')}, {counted(report.segments, 'segment')}, "
        f"{counted(report.records, 'record')}"
    )
    if damages:
        found = f"{counted(damages, 'damaged place')}, {counted(notes, 'note')}"
    else:
        found = f"all is whole, {counted(notes, 'note')}"
    sys.stderr.write(f"checked {looked}: {found}\n")
    if damages:
        sys.stderr.write("  A start continues after damaged parts and deletes none of them.\n")
    elif not report.deep:
        sys.stderr.write(
            "  Sealed segments were judged by their indexes; --deep reads all bytes.\n"
        )


@contextmanager
def _shown(deep: bool, terminal: TextIO) -> Iterator[Progress]:
    """Show a progress bar for a deep check on a terminal."""
    if not (deep and terminal.isatty()):
        yield _nothing, _nothing
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("checking"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(file=terminal), transient=True) as bar:
        task = bar.add_task("checking", total=None)
        yield (
            lambda total: bar.update(task, total=total),
            lambda more: bar.advance(task, more),
        )


def _nothing(_: int) -> None:
    """Show no progress."""
