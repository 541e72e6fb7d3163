"""What a disk may hold when the power goes: durable state, and changes that may have arrived.

A file is sectors of 512 bytes, the least that a disk writes whole; to take the 4 KiB of a page
cache would be kinder. The kernel's cache is written back at any time, so each sector may hold what
it held after any of the pending writes to it, whatever its neighbours hold. A write that makes a
file longer has its new size as a change of its own, in any order with the bytes: they may read as
zeros or, if room for them was never reserved, as anything. Truncations of a file keep their order,
and a later size needs them. A sync makes durable what had returned before it began, of that file
only. After a failed sync of a file, the sectors that it was to write may be lost whatever is synced
later, unless they are written again.

A name is durable once its *directory* was synced: a sync of the file does not do it (ext4 is
kinder), nor does one of another directory (a journal would). Changes of one name keep their order;
those of several names do not, though they do on ext4: POSIX promises none, and btrfs keeps none. A
rename inside a directory is one change, as on every file system in use. A rename between
directories is two changes, the new name first: a file may have both names, never none.

Invariant: pure, except for its own state; the same steps and the same kept atoms give the same
image.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from random import Random
from typing import NamedTuple

from dss_sim.power_loss.image import Content, Image
from dss_sim.power_loss.operations import (
    MakeDirectory,
    OpenFile,
    Rename,
    Reserve,
    Resize,
    Rot,
    Step,
    Sync,
    SyncFailed,
    Tell,
    Unlink,
    Write,
)

SECTOR_BYTES = 512
SIZE = -1
NEVER = sys.maxsize
"""The end of a change that no sync makes durable."""
GONE = -2
"""Part of a rename between directories: the old name is gone."""
NAME = -3
"""Sorts before `GONE`, which needs it, in the order of atoms."""

Atoms = frozenset["Atom"]


class Atom(NamedTuple):
    """What reaches the disk whole or not at all: one sector, the size or a name of one step."""

    step: int
    part: int
    """A sector's number, or `SIZE`, `NAME`, `GONE`."""
    file: int = 0
    """The file whose sector or size it is."""


@dataclass(slots=True)
class _Change:
    """One atom's effect on a sector, a size or a name."""

    atom: Atom
    ended: int
    value: bytes | int | None


@dataclass(slots=True, eq=False)
class _File:
    number: int
    durable: bytearray = field(default_factory=bytearray)
    durable_size: int = 0
    cache: bytearray = field(default_factory=bytearray)
    size: int = 0
    sectors: dict[int, list[_Change]] = field(default_factory=dict)
    sizes: list[_Change] = field(default_factory=list)

    def pending(self) -> Iterator[_Change]:
        yield from self.sizes
        yield from chain.from_iterable(self.sectors.values())


@dataclass(slots=True, eq=False)
class _Directory:
    durable: dict[str, int] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)
    changes: dict[str, list[_Change]] = field(default_factory=dict)

    def pending(self) -> Iterator[_Change]:
        yield from chain.from_iterable(self.changes.values())


class Disk:
    """A disk and the cache above it. Steps are applied in order; `image` changes nothing."""

    def __init__(self, start: Image | None = None) -> None:
        self._files: dict[int, _File] = {}
        self._directories: dict[int, _Directory] = {0: _Directory()}
        self._handles: dict[int, int] = {}
        self._numbers = 0
        self._step = 0
        self._needs: dict[Atom, Atoms] = {}
        self._pending: Sequence[Atom] | None = None
        """Cached until a step changes it."""
        if start is not None:
            self._hold(start)

    @property
    def steps(self) -> int:
        """How many steps were applied."""
        return self._step

    def pending(self) -> Sequence[Atom]:
        """What may or may not have reached the disk, in the order of the steps."""
        if self._pending is None:
            files = (file.pending() for file in self._files.values())
            names = (folder.pending() for folder in self._directories.values())
            atoms = {change.atom for changes in (*files, *names) for change in changes}
            self._pending = sorted(atoms)
        return self._pending

    def closed(self, atoms: Iterable[Atom]) -> Atoms:
        """The atoms, and those that must have arrived before them."""
        found = set(atoms)
        # Few atoms need others.
        waiting = list(found & self._needs.keys())
        while waiting:
            needed = self._needs[waiting.pop()] - found
            found |= needed
            waiting += needed & self._needs.keys()
        return frozenset(found)

    def without(self, atoms: Iterable[Atom]) -> Atoms:
        """Everything pending except the atoms and those that need them."""
        lost = set(atoms)
        kept: set[Atom] = set()
        for atom in self.pending():
            if atom in lost or self._needs.get(atom, frozenset()) & lost:
                lost.add(atom)
            else:
                kept.add(atom)
        return frozenset(kept)

    def apply(self, step: Step) -> None:
        """Apply the next step."""
        self._step += 1
        self._pending = None
        match step.operation:
            case OpenFile() as operation:
                self._open(operation, step.ended)
            case MakeDirectory(path):
                number = self._next_number()
                self._directories[number] = _Directory()
                self._link(path, number, step.ended)
            case Write() | Resize() | Reserve() as operation:
                self._change_file(operation, step.ended)
            case Rename(source, target):
                self._rename(source, target, step.ended)
            case Unlink(path):
                self._link(path, None, step.ended)
            case Sync(handle):
                self._sync(self._handles[handle], step.began)
            case SyncFailed(handle):
                _never_write(self._files[self._handles[handle]])
            case Rot(path, offset, bit):
                rotten = self._found(path)
                assert rotten is not None, path
                _flip(self._files[rotten], offset, 1 << bit)
            case Tell():
                pass

    # Changes

    def _open(self, operation: OpenFile, ended: int) -> None:
        number = self._found(operation.path)
        if number is None:
            assert operation.create, operation
            number = self._next_number()
            self._files[number] = _File(number)
            self._link(operation.path, number, ended)
        elif operation.truncate:
            self._resize(self._files[number], 0, ended)
        self._handles[operation.handle] = number

    def _change_file(self, operation: Write | Resize | Reserve, ended: int) -> None:
        file = self._files[self._handles[operation.handle]]
        match operation:
            case Write(_, offset, content):
                self._write(file, offset, content, ended)
            case Resize(_, size):
                self._resize(file, size, ended)
            case Reserve(_, size):
                self._resize(file, max(size, file.size), ended)

    def _write(self, file: _File, offset: int, content: bytes, ended: int) -> None:
        end = offset + len(content)
        if end > len(file.cache):
            file.cache.extend(bytes(end - len(file.cache)))
        file.cache[offset:end] = content
        if end > file.size:
            self._set_size(file, end, ended)
        for sector in range(offset // SECTOR_BYTES, -(-end // SECTOR_BYTES)):
            change = _Change(Atom(self._step, sector, file.number), ended, _sector(file, sector))
            file.sectors.setdefault(sector, []).append(change)

    def _resize(self, file: _File, size: int, ended: int) -> None:
        """A cut removes the sectors behind it, in one change with the size."""
        if size == file.size:
            return
        cut = size < file.size
        atom = self._set_size(file, size, ended)
        if not cut:
            return
        written = [(sector + 1) * SECTOR_BYTES for sector in file.sectors]
        end = max(len(file.cache), len(file.durable), *written, 0)
        del file.cache[size:]
        for sector in range(size // SECTOR_BYTES, -(-end // SECTOR_BYTES)):
            change = _Change(atom, ended, _sector(file, sector))
            file.sectors.setdefault(sector, []).append(change)

    def _set_size(self, file: _File, size: int, ended: int) -> Atom:
        atom = Atom(self._step, SIZE, file.number)
        sizes = [file.durable_size, *(change.value for change in file.sizes)]
        cuts = {
            change.atom
            for before, change in zip(sizes, file.sizes, strict=False)
            if isinstance(change.value, int) and isinstance(before, int) and change.value < before
        }
        if cuts:
            self._needs[atom] = frozenset(cuts)
        file.sizes.append(_Change(atom, ended, size))
        file.size = size
        return atom

    def _link(self, path: str, number: int | None, ended: int) -> None:
        folder, name = self._folder_of(path)
        self._change_name(folder, name, number, Atom(self._step, NAME), ended)

    def _rename(self, source: str, target: str, ended: int) -> None:
        number = self._found(source)
        assert number is not None, source
        old, old_name = self._folder_of(source)
        new, new_name = self._folder_of(target)
        came = went = Atom(self._step, NAME)
        if old is not new:
            went = Atom(self._step, GONE)
        self._change_name(new, new_name, number, came, ended)
        self._change_name(old, old_name, None, went, ended)
        if went != came:
            self._needs[went] = self._needs.get(went, frozenset()) | {came}

    def _change_name(
        self, folder: _Directory, name: str, number: int | None, atom: Atom, ended: int
    ) -> None:
        changes = folder.changes.setdefault(name, [])
        before = frozenset(change.atom for change in changes) - {atom}
        if before:
            self._needs[atom] = self._needs.get(atom, frozenset()) | before
        changes.append(_Change(atom, ended, number))
        if number is None:
            del folder.names[name]
        else:
            folder.names[name] = number

    # Syncs

    def _sync(self, number: int, began: int) -> None:
        if number in self._files:
            _sync_file(self._files[number], began)
            return
        done = {
            change.atom for change in self._directories[number].pending() if change.ended < began
        }
        done = set(self.closed(done))
        for folder in self._directories.values():
            _sync_names(folder, done)

    # Looking

    def image(self, kept: Atoms, stale: Random | None = None) -> Image:
        """What is found after the power went, if exactly these atoms had reached the disk.

        ``stale`` gives the bytes where a file is longer than what was written of it; else zeros.
        """
        files: dict[str, Content] = {}
        directories: set[str] = set()
        waiting = [("", 0)]
        while waiting:
            path, number = waiting.pop()
            if number in self._files:
                files[path] = _content(self._files[number], kept, stale)
                continue
            if path:
                directories.add(path)
            names = sorted(_names(self._directories[number], kept).items())
            waiting += [(f"{path}/{name}".lstrip("/"), child) for name, child in names]
        return Image(files, frozenset(directories))

    def _hold(self, image: Image) -> None:
        for path in sorted(image.directories):
            number = self._next_number()
            self._directories[number] = _Directory()
            self._enter(path, number)
        for path, content in image.files.items():
            number = self._next_number()
            held, size = content.content, content.size
            self._files[number] = _File(number, bytearray(held), size, bytearray(held), size)
            self._enter(path, number)

    def _enter(self, path: str, number: int) -> None:
        folder, name = self._folder_of(path)
        folder.durable[name] = folder.names[name] = number

    def _next_number(self) -> int:
        self._numbers += 1
        return self._numbers

    def _folder_of(self, path: str) -> tuple[_Directory, str]:
        folder, _, name = path.rpartition("/")
        number = self._found(folder)
        assert number is not None, path
        return self._directories[number], name

    def _found(self, path: str) -> int | None:
        number = 0
        for name in filter(None, path.split("/")):
            if number not in self._directories or name not in self._directories[number].names:
                return None
            number = self._directories[number].names[name]
        return number


def _sector(file: _File, sector: int) -> bytes:
    at = sector * SECTOR_BYTES
    return bytes(file.cache[at : at + SECTOR_BYTES]).ljust(SECTOR_BYTES, b"\0")


def _sync_file(file: _File, began: int) -> None:
    for sector, changes in list(file.sectors.items()):
        covered = [number for number, change in enumerate(changes) if change.ended < began]
        if not covered:
            continue
        _put(file.durable, sector, changes[covered[-1]].value)
        left = changes[covered[-1] + 1 :]
        if left:
            file.sectors[sector] = left
        else:
            del file.sectors[sector]
    done = [change for change in file.sizes if change.ended < began]
    if done:
        assert isinstance(done[-1].value, int)
        file.durable_size = done[-1].value
        del file.sizes[: len(done)]
    del file.durable[file.durable_size :]


def _never_write(file: _File) -> None:
    for changes in file.sectors.values():
        for change in changes:
            if change.atom.part >= 0:
                change.ended = NEVER


def _flip(file: _File, offset: int, bits: int) -> None:
    sector, at = divmod(offset, SECTOR_BYTES)
    for content in (file.durable, file.cache):
        if offset < len(content):
            content[offset] ^= bits
    for change in file.sectors.get(sector, ()):
        assert isinstance(change.value, bytes)
        flipped = bytearray(change.value)
        flipped[at] ^= bits
        change.value = bytes(flipped)


def _sync_names(folder: _Directory, done: set[Atom]) -> None:
    for name, changes in list(folder.changes.items()):
        for change in changes:
            if change.atom in done:
                _set_name(folder.durable, name, change)
        left = [change for change in changes if change.atom not in done]
        if left:
            folder.changes[name] = left
        else:
            del folder.changes[name]


def _set_name(names: dict[str, int], name: str, change: _Change) -> None:
    if isinstance(change.value, int):
        names[name] = change.value
    else:
        names.pop(name, None)


def _names(folder: _Directory, kept: Atoms) -> dict[str, int]:
    names = dict(folder.durable)
    for name, changes in folder.changes.items():
        for change in changes:
            if change.atom in kept:
                _set_name(names, name, change)
    return names


def _content(file: _File, kept: Atoms, stale: Random | None) -> Content:
    size = file.durable_size
    for change in file.sizes:
        if change.atom in kept:
            assert isinstance(change.value, int)
            size = change.value
    found = bytearray(file.durable)
    for sector, changes in file.sectors.items():
        arrived = [change for change in changes if change.atom in kept]
        if arrived:
            _put(found, sector, arrived[-1].value)
        elif stale is not None and sector * SECTOR_BYTES >= file.durable_size:
            _put(found, sector, stale.randbytes(SECTOR_BYTES))
    del found[size:]
    return Content(bytes(found).rstrip(b"\0"), size)


def _put(content: bytearray, sector: int, value: bytes | int | None) -> None:
    assert isinstance(value, bytes)
    at = sector * SECTOR_BYTES
    if len(content) < at:
        content.extend(bytes(at - len(content)))
    content[at : at + SECTOR_BYTES] = value
