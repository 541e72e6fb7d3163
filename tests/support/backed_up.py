"""A directory of backups with small files, as a daemon writes them, and what tests do to it."""

from collections.abc import Mapping
from pathlib import Path

from dss_core.backups.directory import BackupDirectory
from dss_core.backups.manifest import Manifest
from dss_core.backups.targets import BackupTarget, DirectoryTarget

INCARNATION = "ab" * 16
SEGMENT = "log/00000002-0000000000000003"
FILES = {
    "store.sqlite": b"store" * 100,
    f"{SEGMENT}.seg": b"frames" * 1_000,
    f"{SEGMENT}.idx": b"runs" * 10,
}
"""By name; those of the segment are sealed."""


def manifest(**changed: object) -> Manifest:
    """A manifest without files."""
    said: dict[str, object] = {
        "number": 0,
        "incarnation": INCARNATION,
        "taken_at_us": 1_700_000_000_000_000,
        "version": "0.1.0",
        "store_format": 15,
        "directory_format": 1,
        "files": (),
        "ends": {2: (10, 20)},
    }
    return Manifest(**{**said, **changed})  # type: ignore[arg-type] # a test says what it changes


def written(target: BackupTarget, files: Mapping[str, bytes] = FILES) -> Manifest:
    """Write a backup of these files to a target; files that the target has are not sent again."""
    kept = [each for each in target.held.values() if each.sealed and each.name in files]
    there = {each.name for each in kept}
    coming = {name: content for name, content in files.items() if name not in there}
    target.begin(sum(map(len, coming.values())))
    for name, content in coming.items():
        target.open(name, len(content))
        target.write(content[:7])
        target.write(content[7:])
        kept.append(target.close(sealed=name.startswith(SEGMENT)))
    return target.finish(manifest(files=tuple(kept)))


def backed_up(path: Path, files: Mapping[str, bytes] = FILES) -> Manifest:
    """Add a backup to a directory."""
    with BackupDirectory.opened(path) as directory:
        return written(DirectoryTarget(directory), files)
