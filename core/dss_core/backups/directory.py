"""A directory of backups: the files of all of them, by their checksums, and a manifest for each.

::

    DIR/
    ├── DSS-BACKUPS            says what the directory is; locked by who changes it
    ├── backups/000007.json    a manifest (`dss_core.backups.manifest`)
    ├── files/5e/5e0c…-4096    the bytes of a file, by its checksum and its size
    └── log/…, store.sqlite    of a backup that came as one tar: files by their names

A file that several backups share is stored once. Invariant: all files of a manifest under its final
name exist, complete and durable. So a crash at any moment leaves the earlier backups intact, and
perhaps files that no manifest names, which the next change removes. One process changes a directory
at a time. Blocking.
"""

import errno
import fcntl
import os
import shutil
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Self

from dss_core.backups.manifest import BackedUpFile, Manifest, checksum_of, decoded, encoded
from dss_core.counted import bytes_text
from dss_core.default_paths import expanded
from dss_core.errors import (
    BackupDamaged,
    BackupFailed,
    BackupNewer,
    BackupNotFound,
    BackupTargetUnfit,
    BackupUnderWay,
    NoRoomForBackup,
)

MARKER = "DSS-BACKUPS"
MARKER_TEXT = "backups of a DSS daemon, format 1\n"
MANIFESTS = "backups"
_FILES, _INCOMING = "files", "incoming"
_DATA_MARKER = "FORMAT"
"""What a data directory has."""

BACKUP_SPARE_BYTES = 16 << 20
"""Free space that must remain on the disk of a backup, for manifests and the file system."""

BACKUP_PIECE_BYTES = 1 << 20
"""What is read or written of a file at once."""

MANIFEST_BYTES_MAX = 256 << 20
"""What is read of a manifest: a million files."""

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


class BackupDirectory:
    """One that is there. Made by `opened` or `existing`; those who change it enter it."""

    def __init__(self, path: Path, descriptor: int | None = None) -> None:
        self.path = path
        self._lock = descriptor

    @classmethod
    def existing(cls, path: Path) -> Self:
        """One that holds backups; nothing is changed.

        Raises:
            BackupTargetUnfit: it is none.
            BackupNewer: a newer version wrote it.
        """
        path = expanded(path).absolute()
        _check_marker(path / MARKER, path)
        return cls(path)

    @classmethod
    @contextmanager
    def opened(cls, path: Path) -> Iterator[Self]:
        """One to be changed; it is made where it is not there, if its parent is.

        Raises:
            BackupTargetUnfit: it cannot be one; nothing was changed.
            BackupUnderWay: another process changes it.
            BackupNewer: a newer version wrote it.
        """
        path = expanded(path).absolute()
        _refuse_unfit(path)
        try:
            path.mkdir(mode=0o700, exist_ok=True)
            marker = path / MARKER
            if not marker.exists():
                write_durably(marker, MARKER_TEXT.encode())
            _check_marker(marker, path)
            descriptor = os.open(marker, os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            raise _unfit(path, str(error.strerror).lower()) from error
        try:
            yield cls(path, _locked(descriptor, path))
        finally:
            os.close(descriptor)

    # What is there

    def manifests(self) -> list[Manifest]:
        """All backups, the oldest first.

        Raises:
            BackupDamaged, BackupNewer: a manifest cannot be read.
        """
        return [self._read(path) for path in self.manifest_paths()]

    def manifest_paths(self) -> list[Path]:
        """The manifests, the oldest first.

        Raises:
            BackupTargetUnfit: the directory cannot be read.
        """
        try:
            return sorted((self.path / MANIFESTS).glob("[0-9]*.json"))
        except OSError as error:
            raise _unfit(self.path, str(error.strerror).lower()) from error

    def manifest(self, number: int | None = None) -> Manifest:
        """The backup of that number; the newest where none is said.

        Raises:
            BackupNotFound: there is none.
            BackupDamaged, BackupNewer: its manifest cannot be read.
        """
        paths = {int(path.stem): path for path in self.manifest_paths()}
        wanted = max(paths, default=None) if number is None else number
        if wanted is None or wanted not in paths:
            listed = ", ".join(map(str, paths)) or "none"
            raise BackupNotFound(path=self.path, number=wanted or "yet", listed=listed)
        return self._read(paths[wanted])

    def path_of(self, file: BackedUpFile) -> Path:
        """Where the bytes of a file lie."""
        by_name = self.path / file.name
        return by_name if by_name.exists() else self._by_checksum(file.checksum, file.bytes)

    def files_of(self, incarnation: str) -> Mapping[str, BackedUpFile]:
        """The files of that incarnation that exist already, by name: sealed ones of all backups,
        others of the newest backup only."""
        manifests = [each for each in self.manifests() if each.incarnation == incarnation]
        found = {
            each.name: each
            for manifest in manifests
            for each in manifest.files
            if each.sealed or manifest is manifests[-1]
        }
        return {
            name: each for name, each in found.items() if _size(self.path_of(each)) == each.bytes
        }

    def _read(self, path: Path) -> Manifest:
        where = path.relative_to(self.path)
        try:
            with path.open("rb") as file:
                manifest = decoded(file.read(MANIFEST_BYTES_MAX), where)
        except OSError as error:
            raise BackupDamaged(path=where, reason=error.strerror) from error
        if manifest.number != int(path.stem):
            raise BackupDamaged(path=where, reason=f"it is of backup {manifest.number}")
        return manifest

    def _by_checksum(self, checksum: str, size: int) -> Path:
        return self.path / _FILES / checksum[:2] / f"{checksum}-{size}"

    # Changes

    def require_room(self, size_bytes: int) -> None:
        """Make sure that so much fits.

        Raises:
            NoRoomForBackup: it does not.
        """
        require_room(self.path, size_bytes)

    @contextmanager
    def incoming(self) -> "Iterator[IncomingFile]":
        """A new file to write; it is removed at the end unless it is kept.

        Raises:
            BackupFailed: it cannot be written.
        """
        path = self.path / _INCOMING
        with failing(self.path), path.open("wb") as file:
            try:
                yield IncomingFile(self, path, file.fileno())
            finally:
                path.unlink(missing_ok=True)

    def kept(self, path: Path, checksum: str, size: int) -> None:
        """Move a complete and durable file to the name of its checksum."""
        final = self._by_checksum(checksum, size)
        final.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.rename(final)

    def finish(self, manifest: Manifest) -> Manifest:
        """Complete a backup whose files are durable: write its manifest; returns it with its
        number.

        Raises:
            BackupFailed: it cannot be written.
        """
        last = max((int(path.stem) for path in self.manifest_paths()), default=0)
        numbered = replace(manifest, number=last + 1)
        with failing(self.path):
            for folder in sorted({self.path_of(each).parent for each in numbered.files}):
                sync_directory(folder)
            if (self.path / _FILES).is_dir():
                sync_directory(self.path / _FILES)
            folder = self.path / MANIFESTS
            folder.mkdir(mode=0o700, exist_ok=True)
            write_durably(folder / manifest_name(numbered.number), encoded(numbered))
            sync_directory(self.path)
        return numbered

    def remove(self, numbers: Container[int]) -> int:
        """Remove backups, and the files that no other has; returns how many bytes went.

        Raises:
            BackupFailed: it cannot be done.
            BackupDamaged, BackupNewer: a manifest that stays cannot be read; nothing was removed.
        """
        going = [path for path in self.manifest_paths() if int(path.stem) in numbers]
        stays = [self._read(path) for path in self.manifest_paths() if path not in going]
        with failing(self.path):
            for path in going:
                path.unlink()
                sync_directory(path.parent)
            return self._sweep({self.path_of(each) for one in stays for each in one.files})

    def sweep(self) -> int:
        """Remove files of no backup, left by an unfinished one; as `remove`."""
        return self.remove(frozenset())

    def _sweep(self, named: Container[Path]) -> int:
        size_bytes = 0
        found = [*self.path.glob(f"{_FILES}/*/*"), *self.path.glob("log/*")]
        found += [self.path / "store.sqlite", self.path / _INCOMING]
        for path in found:
            if path not in named and path.is_file():
                size_bytes += path.stat().st_size
                path.unlink()
        return size_bytes


def manifest_name(number: int) -> str:
    """The file that has the manifest of a backup."""
    return f"{number:06}.json"


class IncomingFile:
    """A file that is being written."""

    def __init__(self, directory: BackupDirectory, path: Path, descriptor: int) -> None:
        self._directory = directory
        self._path = path
        self._descriptor = descriptor
        self._sum = checksum_of()
        self.bytes = 0
        """That it has."""

    def write(self, content: bytes | memoryview) -> None:
        """So much more."""
        view = memoryview(content)
        self._sum.update(view)
        self.bytes += len(view)
        while view:
            view = view[os.write(self._descriptor, view) :]

    def keep(self, name: str, *, sealed: bool, modified_ns: int = 0) -> BackedUpFile:
        """The file is complete: make it durable and move it into the directory."""
        os.fdatasync(self._descriptor)
        file = BackedUpFile(name, self.bytes, self._sum.hexdigest(), sealed, modified_ns)
        self._directory.kept(self._path, file.checksum, file.bytes)
        return file


@contextmanager
def failing(path: Path) -> Iterator[None]:
    """What is written below a path.

    Raises:
        BackupFailed: the disk refused it.
        BrokenPipeError: nobody reads it any more.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        full = error.errno in _FULL
        reason = f"the disk of {path} is full" if full else f"{path}: {error.strerror}"
        raise BackupFailed(reason=reason) from error


def require_room(path: Path, size_bytes: int) -> None:
    """Make sure that so much fits on the disk of a directory.

    Raises:
        NoRoomForBackup: it does not.
    """
    free = shutil.disk_usage(path).free
    if free < size_bytes + BACKUP_SPARE_BYTES:
        needed = bytes_text(size_bytes + BACKUP_SPARE_BYTES)
        raise NoRoomForBackup(path=path, needed=needed, free=bytes_text(free))


def checked_pieces(path: Path, file: BackedUpFile) -> Iterator[bytes]:
    """The bytes of a file of a backup; it ends only if they are those that were written.

    Raises:
        BackupDamaged: they are not; the file is named.
    """
    summed, size = checksum_of(), 0
    where = f"{file.name} ({path.name})"
    try:
        with path.open("rb", buffering=0) as opened:
            while piece := opened.read(BACKUP_PIECE_BYTES):
                summed.update(piece)
                size += len(piece)
                yield piece
    except OSError as error:
        raise BackupDamaged(path=where, reason=error.strerror) from error
    if size != file.bytes:
        raise BackupDamaged(path=where, reason=f"it has {size} bytes instead of {file.bytes}")
    if summed.hexdigest() != file.checksum:
        raise BackupDamaged(path=where, reason="its bytes are not those that were written")


def write_durably(path: Path, content: bytes) -> None:
    """Replace a file, atomically and durably."""
    staged = path.with_name(f"{path.name}.new")
    descriptor = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    staged.rename(path)
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def inside_data_directory(path: Path) -> Path | None:
    """The data directory that a path is or lies in; None: in none."""
    resolved = path.resolve()
    return next(
        (each for each in (resolved, *resolved.parents) if (each / _DATA_MARKER).is_file()), None
    )


def _refuse_unfit(path: Path) -> None:
    data = inside_data_directory(path)
    if data is not None:
        raise _unfit(path, f"it lies in the data directory {data}, and would be lost with it")
    if not path.parent.is_dir():
        raise _unfit(path, f"there is no directory {path.parent}; is its disk mounted?")
    if path.exists() and not path.is_dir():
        raise _unfit(path, "it is a file")
    if path.is_dir() and not (path / MARKER).exists() and any(_strangers(path)):
        raise _unfit(path, "it is not empty, and holds no backups")


def _strangers(path: Path) -> Iterable[Path]:
    return (each for each in path.iterdir() if each.name not in (f"{MARKER}.new", "lost+found"))


def _check_marker(marker: Path, path: Path) -> None:
    try:
        text = marker.read_bytes()[:256].decode("ascii", "replace")
    except (FileNotFoundError, NotADirectoryError) as error:
        raise _unfit(path, "it holds no backups") from error
    except OSError as error:
        raise _unfit(path, str(error.strerror).lower()) from error
    if text == MARKER_TEXT:
        return
    head, _, number = text.strip().rpartition(" ")
    if MARKER_TEXT.startswith(head) and number.isdecimal():
        raise BackupNewer(path=path, found=number, known=1)
    raise _unfit(path, f"{MARKER} in it is not ours")


def _locked(descriptor: int, path: Path) -> int:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise BackupUnderWay(what=f"A change of {path}") from error
    return descriptor


def _unfit(path: Path, reason: str) -> BackupTargetUnfit:
    advice = "Name a directory of its own on another disk: dssctl backup create /backups/dss"
    return BackupTargetUnfit(path=path, reason=reason, advice=advice)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1
