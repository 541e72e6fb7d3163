"""A bundle that somebody gathered, read where it helps.

Invariant: nothing of it is ever written to disk, and no more of it is read than a bundle may hold;
what is no bundle is refused before anything of it is told.
"""

import hashlib
import json
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dss_core.errors import DocumentUnreadable, InputUnreadable
from dssctl.limits import BUNDLE_BYTES_MAX, BUNDLE_ENTRY_BYTES_MAX
from dssctl.support.bundle import FORMAT, KIND, MANIFEST

BUNDLE_FILES_MAX = 1_000
"""In one that is read: some twenty, and the logs that were named."""


@dataclass(frozen=True, slots=True)
class Gathered:
    """What is in a bundle."""

    manifest: Mapping[str, Any]
    files: Mapping[str, bytes]
    """By name, without the folder that all are in."""

    def spoiled(self) -> list[str]:
        """Files that are not there any more as they were gathered."""
        return [
            each["name"]
            for each in self.manifest["entries"]
            if hashlib.sha256(self.files.get(each["name"], b"")).hexdigest() != each["sha256"]
        ]

    def lines(self, name: str) -> list[str]:
        """A file of it as text; nothing where it is missing."""
        return self.files.get(name, b"").decode(errors="backslashreplace").splitlines()

    def items(self, name: str) -> Iterator[Mapping[str, Any]]:
        """A file of JSON lines; a line that is none is passed over."""
        return (item for item in map(_item, self.lines(name)) if item is not None)

    def passed_over(self, name: str) -> int:
        """How many lines of such a file are none."""
        return [_item(line) for line in self.lines(name)].count(None)


def _item(line: str) -> Mapping[str, Any] | None:
    try:
        item = json.loads(line)
    except ValueError:
        return None
    return item if isinstance(item, dict) else None


def read_bundle(path: Path) -> Gathered:
    """The bundle at the path.

    Raises:
        InputUnreadable: there is no such file, or it cannot be read.
        DocumentUnreadable: it is no bundle.
    """
    try:
        with tarfile.open(path, "r:gz") as archive:
            files = dict(_files(archive))
        manifest = _manifest(files)
    except (tarfile.TarError, EOFError, zlib.error, ValueError, KeyError, TypeError) as broken:
        raise _unreadable(path, str(broken)) from broken
    except OSError as failed:
        # What is not packed is an OSError without a number.
        if failed.errno is None:
            raise _unreadable(path, str(failed)) from failed
        raise InputUnreadable(path=path, reason=failed.strerror) from failed
    return Gathered(manifest, files)


def _files(archive: tarfile.TarFile) -> Iterator[tuple[str, bytes]]:
    left = BUNDLE_BYTES_MAX + BUNDLE_ENTRY_BYTES_MAX
    for number, member in enumerate(archive):
        left -= member.size
        if number >= BUNDLE_FILES_MAX or left < 0:
            raise ValueError("it holds more than a bundle may")
        file = archive.extractfile(member) if member.isfile() else None
        if file is not None:
            yield member.name.partition("/")[2], file.read()


def _manifest(files: Mapping[str, bytes]) -> Mapping[str, Any]:
    """The manifest, all of whose parts are as they are looked at later."""
    if MANIFEST not in files:
        raise ValueError(f"it has no {MANIFEST}")
    manifest = json.loads(files[MANIFEST])
    if not isinstance(manifest, dict) or manifest.get("kind") != KIND:
        raise ValueError(f"its {MANIFEST} is not one of kind {KIND}")
    try:
        return _as_known(manifest)
    except (KeyError, TypeError, ValueError) as other:
        form, by = _origin(manifest)
        if form == FORMAT:
            raise
        reason = f"it is of format {form}, this dssctl knows {FORMAT}: ask dssctl {by}"
        raise ValueError(reason) from other


def _as_known(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    form, by = _origin(manifest)
    entries = [
        {"name": str(each["name"]), "sha256": each["sha256"], "cut": bool(each["cut"])}
        for each in manifest["entries"]
    ]
    missing = [{key: str(each[key]) for key in ("name", "why")} for each in manifest["missing"]]
    return {
        "format": form,
        "dssctl": by,
        "gathered_at": str(manifest["gathered_at"]),
        "names_hidden": bool(manifest["names_hidden"]),
        "entries": entries,
        "missing": missing,
    }


def _origin(manifest: Mapping[str, Any]) -> tuple[object, str]:
    """Format, and the version of the tool that gathered it."""
    return manifest.get("format", FORMAT), str(manifest.get("dssctl", "of an unknown version"))


def _unreadable(path: Path, reason: str) -> DocumentUnreadable:
    return DocumentUnreadable(
        path=path, what="a bundle", reason=reason, command="dssctl support gather"
    )
