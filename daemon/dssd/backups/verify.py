"""Verifies backups: checks every file against its checksum, and starts a daemon on a restored copy.

Invariant: nothing in the directory is changed. A deep verification restores the backup elsewhere,
checks it as `dssd check --deep` does, and starts a daemon on it that no client can reach. Blocking.
"""

import selectors
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from dss_core.backups.directory import BackupDirectory, checked_pieces, require_room
from dss_core.backups.manifest import BackedUpFile, Manifest
from dss_core.errors import BackupDamaged, DssError
from dssd.backups.restore import restore
from dssd.check.directory import checked
from dssd.check.findings import Weight
from dssd.data_directory import DataDirectory

VERIFY_START_S = 600.0
"""A start on a copy reads the newest file of each topic. One that takes longer than this counts as
damage."""

VERIFY_STOP_S = 30.0
"""A stop takes seconds at most."""

_LISTENING = " listening on "

Told = Callable[[int], None]
"""Called with how many more bytes were read."""


@dataclass(slots=True)
class Verified:
    """What was found."""

    backups: int = 0
    files: int = 0
    bytes: int = 0
    damage: list[tuple[str, str]] = field(default_factory=list)
    """Where, and what."""
    notes: list[tuple[str, str]] = field(default_factory=list)


def verified(path: Path, number: int | None, *, deep: bool, told: Told) -> Verified:
    """Check all backups of a directory, or one; a deep check also starts a daemon on the newest.

    Raises:
        BackupTargetUnfit, BackupNotFound, BackupNewer: there is nothing to be checked.
        NoRoomForBackup: there is no room for the copy of a deep look.
    """
    source = BackupDirectory.existing(path)
    found = Verified()
    manifests = _manifests(source, number, found)
    files = {(each.name, each.checksum): each for manifest in manifests for each in manifest.files}
    for file in files.values():
        _check(source, file, found, told)
    found.backups, found.files = len(manifests), len(files)
    if deep and manifests and not found.damage:
        _start(source, manifests[-1], found)
    return found


def _manifests(source: BackupDirectory, number: int | None, found: Verified) -> list[Manifest]:
    """Those that can be read."""
    if number is not None:
        return [source.manifest(number)]
    manifests: list[Manifest] = []
    for path in source.manifest_paths():
        try:
            manifests.append(source.manifest(int(path.stem)))
        except BackupDamaged as damaged:
            _note_damage(found, damaged)
    if not manifests and not found.damage:
        source.manifest()  # says that there is none
    return manifests


def _check(source: BackupDirectory, file: BackedUpFile, found: Verified, told: Told) -> None:
    try:
        for piece in checked_pieces(source.path_of(file), file):
            found.bytes += len(piece)
            told(len(piece))
    except BackupDamaged as damaged:
        _note_damage(found, damaged)


def _note_damage(found: Verified, damaged: BackupDamaged) -> None:
    found.damage.append((damaged.fields["path"], damaged.fields["reason"]))


def _start(source: BackupDirectory, manifest: Manifest, found: Verified) -> None:
    """Restore the backup elsewhere, check that, and let a daemon start on it."""
    require_room(Path(tempfile.gettempdir()), manifest.bytes)
    where = f"backup {manifest.number}"
    with tempfile.TemporaryDirectory(prefix="dssd-verify-") as folder:
        into = Path(folder) / "data"
        try:
            restore(source.path, into, manifest.number)
        except DssError as refused:
            found.damage.append((where, refused.message))
            return
        for weight, at, what in _findings(into):
            (found.damage if weight is Weight.DAMAGE else found.notes).append((at, what))
        trouble = "" if found.damage else _trouble_of_a_start(into)
        if trouble:
            found.damage.append((where, trouble))


def _findings(into: Path) -> Iterator[tuple[Weight, str, str]]:
    with DataDirectory.existing(into) as directory:
        report = checked(directory, deep=True, begun=_nothing, advanced=_nothing)
    for finding in report.findings:
        yield finding.weight, finding.where, finding.what


def _nothing(_: int) -> None:
    """Show no progress."""


def _trouble_of_a_start(into: Path) -> str:
    """What is wrong with a start and a stop; empty where nothing is."""
    command = [sys.executable, "-m", "dssd", "serve", "--data-dir", str(into)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as daemon:
        try:
            said = _said_until_it_serves(daemon)
            daemon.terminate()
            code = daemon.wait(VERIFY_STOP_S)
        except subprocess.TimeoutExpired:
            return "a daemon that was started on it did not stop"
        finally:
            daemon.kill()
    last = said[-1] if said else "it said nothing"
    if _LISTENING not in last:
        return f"a daemon does not start on it: {last.strip()}"
    return f"a daemon that was started on it ended with {code}" if code else ""


def _said_until_it_serves(daemon: "subprocess.Popen[bytes]") -> list[str]:
    assert daemon.stderr is not None
    said: list[str] = []
    ends_at = monotonic() + VERIFY_START_S
    with selectors.DefaultSelector() as ready:
        ready.register(daemon.stderr, selectors.EVENT_READ)
        while ready.select(max(0.0, ends_at - monotonic())):
            line = daemon.stderr.readline().decode(errors="replace")
            if not line:
                break
            said.append(line)
            if _LISTENING in line:
                break
    return said
