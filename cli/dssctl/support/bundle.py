"""The file of a bundle: a tar archive with a manifest.

Invariant: the file is there whole or not at all, nobody else may read it, and nothing that was
there before is replaced. What is longer than its bound is cut between lines, and the manifest says
so.
"""

import hashlib
import io
import json
import os
import tarfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dss_core.errors import FileUnwritable
from dssctl.limits import BUNDLE_BYTES_MAX, BUNDLE_ENTRY_BYTES_MAX

MANIFEST = "manifest.json"
KIND = "DssSupport"
"""What the manifest says that it is."""
FORMAT = 1
"""The format of manifest and files. It rises when a reader of the previous format would misread a
bundle. A bundle without a format has this one."""


class Bundle:
    """An archive that is being written."""

    def __init__(self, archive: tarfile.TarFile, folder: str, time_s: int) -> None:
        self._archive = archive
        self._folder = folder
        self._time_s = time_s
        self._left_bytes = BUNDLE_BYTES_MAX
        self.entries: list[dict[str, object]] = []
        self.missing: list[dict[str, str]] = []

    def add(self, name: str, what: str, lines: Iterable[str]) -> None:
        """One file of lines, as far as its bound goes."""
        room = min(self._left_bytes, BUNDLE_ENTRY_BYTES_MAX)
        content, cut = _bounded(lines, room)
        self._left_bytes -= len(content)
        self._write(name, content)
        digest = hashlib.sha256(content).hexdigest()
        entry = {"name": name, "what": what, "bytes": len(content), "sha256": digest, "cut": cut}
        self.entries.append(entry)

    def miss(self, name: str, why: str) -> None:
        """A file that could not be had."""
        self.missing.append({"name": name, "why": why})

    def close(self, about: dict[str, object]) -> None:
        """Write the manifest, which says what else is there."""
        manifest = {"format": FORMAT, **about, "entries": self.entries, "missing": self.missing}
        self._write(MANIFEST, (json.dumps(manifest, indent=2) + "\n").encode())

    def _write(self, name: str, content: bytes) -> None:
        facts = tarfile.TarInfo(f"{self._folder}/{name}")
        facts.size, facts.mtime, facts.mode = len(content), self._time_s, 0o600
        self._archive.addfile(facts, io.BytesIO(content))


@contextmanager
def bundle_at(path: Path, time_s: int) -> Iterator[Bundle]:
    """A new file at the path; it is gone again where something fails.

    Raises:
        FileUnwritable: it cannot be made, or is there already.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as refused:
        raise FileUnwritable(path=path, reason=refused.strerror) from refused
    folder = path.name.removesuffix(".tar.gz")
    try:
        with (
            os.fdopen(descriptor, "wb") as file,
            tarfile.open(fileobj=file, mode="w:gz") as archive,
        ):
            yield Bundle(archive, folder, time_s)
    except BaseException as failed:
        with suppress(OSError):
            path.unlink()
        if isinstance(failed, OSError):
            raise FileUnwritable(path=path, reason=failed.strerror) from failed
        raise


def _bounded(lines: Iterable[str], room: int) -> tuple[bytes, bool]:
    pieces: list[bytes] = []
    size = 0
    for line in lines:
        piece = line.encode(errors="backslashreplace") + b"\n"
        size += len(piece)
        if size > room:
            return b"".join(pieces), True
        pieces.append(piece)
    return b"".join(pieces), False
