"""Where a backup is written to: a directory of backups, or a tar.

::

    begin ─▶ (open ─▶ write … ─▶ close) for each file that comes ─▶ finish
      └──────────┴──────┴──────────┴──▶ abandon, at any time

Invariant: a directory has the backup after `finish`, and not before. A complete tar unpacks to a
directory of backups. Blocking.
"""

import tarfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, Protocol

from dss_core.backups.directory import (
    MANIFESTS,
    MARKER,
    MARKER_TEXT,
    BackupDirectory,
    IncomingFile,
    failing,
    manifest_name,
)
from dss_core.backups.manifest import BackedUpFile, Manifest, checksum_of, encoded

NOTHING: Mapping[str, BackedUpFile] = {}


class BackupTarget(Protocol):
    """One of them."""

    name: str
    """For people."""
    incarnation: str
    """Of the data that it has files of; empty where it has none."""
    held: Mapping[str, BackedUpFile]
    """The files that it has of that incarnation: unchanged ones need not be sent."""

    def begin(self, coming_bytes: int) -> None:
        """Announce the bytes of the backup.

        Raises:
            NoRoomForBackup: it does not fit.
            BackupFailed: the target refuses it.
        """

    def open(self, name: str, size: int) -> None:
        """Begin a file."""

    def write(self, content: bytes) -> None:
        """Write the next bytes of the file.

        Raises:
            BackupFailed: the target refuses it.
        """

    def close(self, *, sealed: bool, modified_ns: int = 0) -> BackedUpFile:
        """The file is whole; as `write`."""

    def finish(self, manifest: Manifest) -> Manifest:
        """All files are written: write the manifest, under its number here; as `write`."""

    def abandon(self) -> None:
        """Give the backup up."""


class DirectoryTarget:
    """A directory of backups that this process changes."""

    def __init__(self, into: BackupDirectory) -> None:
        """Look what it has.

        Raises:
            BackupDamaged, BackupNewer: a manifest in it cannot be read.
        """
        into.sweep()
        self._into = into
        self.name = str(into.path)
        newest = into.manifests()[-1:]
        self.incarnation = newest[0].incarnation if newest else ""
        self.held = into.files_of(self.incarnation) if newest else NOTHING
        self._opened = ExitStack()
        self._file: IncomingFile | None = None
        self._name = ""

    def begin(self, coming_bytes: int) -> None:
        """Make sure that it fits."""
        self._into.require_room(coming_bytes)

    def open(self, name: str, size: int) -> None:
        """Begin a file."""
        self._name = name
        self._file = self._opened.enter_context(self._into.incoming())

    def write(self, content: bytes) -> None:
        """Write the next bytes of the file."""
        assert self._file is not None, "it is open"
        with failing(self._into.path):
            self._file.write(content)

    def close(self, *, sealed: bool, modified_ns: int = 0) -> BackedUpFile:
        """The file is whole: it is durable now."""
        assert self._file is not None, "it is open"
        with self._opened.pop_all(), failing(self._into.path):
            return self._file.keep(self._name, sealed=sealed, modified_ns=modified_ns)

    def finish(self, manifest: Manifest) -> Manifest:
        """The backup is there."""
        return self._into.finish(manifest)

    def abandon(self) -> None:
        """Remove the file that is not whole; the next change removes the others."""
        self._opened.close()


class TarTarget:
    """A file that is written in order, to its end."""

    name = "a tar"
    incarnation = ""
    held = NOTHING

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._sum = checksum_of()
        self._written = 0
        self._name, self._size = "", 0

    def begin(self, coming_bytes: int) -> None:
        """Write the marker of a backup directory first."""
        self._add(MARKER, MARKER_TEXT.encode())

    def open(self, name: str, size: int) -> None:
        """Begin a file."""
        self._name, self._size, self._sum = name, size, checksum_of()
        self._written = 0
        self._write(_head(name, size))

    def write(self, content: bytes) -> None:
        """Write the next bytes of the file."""
        self._sum.update(content)
        self._written += len(content)
        self._write(content)

    def close(self, *, sealed: bool, modified_ns: int = 0) -> BackedUpFile:
        """The file is whole."""
        assert self._written == self._size, "its size was told before"
        self._write(bytes(-self._size % tarfile.BLOCKSIZE))
        return BackedUpFile(self._name, self._size, self._sum.hexdigest(), sealed, modified_ns)

    def finish(self, manifest: Manifest) -> Manifest:
        """The manifest, and the end of the tar."""
        numbered = replace(manifest, number=1)
        self._add(f"{MANIFESTS}/{manifest_name(numbered.number)}", encoded(numbered))
        self._write(bytes(2 * tarfile.BLOCKSIZE))
        with failing(Path(self.name)):
            self._file.flush()
        return numbered

    def abandon(self) -> None:
        """Leave the tar without its end, which shows that it is incomplete."""

    def _add(self, name: str, content: bytes) -> None:
        padding = bytes(-len(content) % tarfile.BLOCKSIZE)
        self._write(_head(name, len(content)) + content + padding)

    def _write(self, content: bytes) -> None:
        with failing(Path(self.name)):
            self._file.write(content)


def _head(name: str, size: int) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.mode = size, 0o600
    return info.tobuf(tarfile.PAX_FORMAT)
