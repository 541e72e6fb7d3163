"""The commands ``dssd verify`` and ``dssd restore``.

stdout gets what was found, or one JSON document; stderr a summary for people and, on a terminal,
the progress. Exit codes: 0 all is whole, or restored; 1 there is damage.
"""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dss_core.backups.directory import BackupDirectory
from dss_core.counted import bytes_text, counted
from dss_core.errors import DiskFailed, ExitCode
from dssd.backups.restore import Restored
from dssd.backups.restore import restore as restored
from dssd.backups.verify import Verified, verified

API_VERSION = "dssd/v1"


def verify(path: Path, *, number: int | None, deep: bool, as_json: bool) -> ExitCode:
    """Check backups and print what was found.

    Raises:
        BackupTargetUnfit, BackupNotFound, BackupNewer, NoRoomForBackup: nothing was checked.
        DiskFailed: the disk refused it.
    """
    source = BackupDirectory.existing(path)
    with _disk(), _bar("verifying", _size(source, number)) as advanced:
        found = verified(path, number, deep=deep, told=advanced)
    if as_json:
        sys.stdout.write(f"{json.dumps(_document(source.path, found, deep=deep), indent=2)}\n")
    else:
        _print(found)
    return ExitCode.FAILED if found.damage else ExitCode.OK


def restore(path: Path, into: Path, *, number: int | None) -> ExitCode:
    """Restore a backup and say what comes next.

    Raises:
        What `dssd.backups.restore.restore` raises; DiskFailed: the disk refused it.
    """
    every = BackupDirectory.existing(path).manifest(number).bytes
    done = 0
    with _disk(), _bar("restoring", every) as advanced:

        def told(there: int, _: int) -> None:
            nonlocal done
            advanced(there - done)
            done = there

        made = restored(path, into, number, told=told)
    sys.stdout.write(_next_steps(made))
    sys.stdout.flush()
    return ExitCode.OK


def _next_steps(made: Restored) -> str:
    manifest, renewal = made.manifest, made.renewal
    what = f"{bytes_text(manifest.bytes)}, {counted(len(manifest.files), 'file')}"
    lines = [
        f"restored backup {manifest.number} into {made.directory}: {what}",
        f"its incarnation is {renewal.incarnation.hex()}",
        f"start it: dssd serve --data-dir {made.directory}",
    ]
    if renewal.suspended:
        who = counted(renewal.suspended, "principal is", "principals are")
        lines.append(f"{who} suspended; who may still call: dssctl principals confirm NAME")
    return "".join(f"{line}\n" for line in lines)


def _print(found: Verified) -> None:
    for weight, findings in (("damage", found.damage), ("note", found.notes)):
        for where, what in findings:
            sys.stdout.write(f"{weight}: {where}: {what}\n")
    looked = (
        f"{counted(found.backups, 'backup')}, {counted(found.files, 'file')}, "
        f"{bytes_text(found.bytes)}"
    )
    result = f"{counted(len(found.damage), 'damaged place')}" if found.damage else "all is whole"
    sys.stderr.write(f"verified {looked}: {result}\n")


def _document(path: Path, found: Verified, *, deep: bool) -> dict[str, object]:
    findings = [
        {"weight": weight, "where": where, "what": what}
        for weight, own in (("damage", found.damage), ("note", found.notes))
        for where, what in own
    ]
    item = {
        "directory": str(path),
        "deep": deep,
        "damaged": bool(found.damage),
        "backups": found.backups,
        "files": found.files,
        "bytesRead": found.bytes,
        "findings": findings,
    }
    return {"apiVersion": API_VERSION, "kind": "Verification", "item": item}


def _size(source: BackupDirectory, number: int | None) -> int:
    """Roughly the bytes of the existing files, for the progress bar only."""
    if number is not None:
        return source.manifest(number).bytes
    return sum(path.stat().st_size for path in source.path.rglob("*") if path.is_file())


@contextmanager
def _disk() -> Iterator[None]:
    """What is read and written.

    Raises:
        DiskFailed: the disk refused it.
    """
    try:
        yield
    except OSError as error:
        raise DiskFailed(reason=f"{error.filename or 'a file'}: {error.strerror}") from error


@contextmanager
def _bar(title: str, every: int) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on a terminal; yields a function that adds finished bytes."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(title), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as bar:
        task = bar.add_task(title, total=every)
        yield lambda more: bar.advance(task, more)
