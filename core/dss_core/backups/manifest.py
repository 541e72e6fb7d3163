"""The manifest of a backup: its files, the incarnation of its data, and the end of each stream.

A manifest is one JSON document with a checksum over its other values::

    number, taken_at_us         which backup of its directory it is; when it was taken
    incarnation                 which data it is of
    version, store_format,      who made it, and what a restore has to know
    directory_format
    files                       store.sqlite, and log/ files: name, bytes, checksum, sealed, when
                                they were last written
    ends                        by storage topic: the end offset of each stream

Invariant: what `decoded` returns can be trusted to be what `encoded` wrote, and names no file
outside of a data directory: names are those that a daemon gives, and nothing else.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import xxhash

from dss_core.errors import BackupDamaged, BackupNewer

MANIFEST_FORMAT = 1

STORE_FILE = "store.sqlite"
LOG_FOLDER = "log/"

_NAME = re.compile(r"store\.sqlite|log/[0-9a-f]{8}-[0-9a-f]{16}\.(seg|idx|prod)")
_CHECKSUM = re.compile(r"[0-9a-f]{32}")
_NO_MANIFEST = (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError)
"""What a document of another form makes of being read."""


@dataclass(frozen=True, slots=True)
class BackedUpFile:
    """One file of a backup."""

    name: str
    """In a data directory."""
    bytes: int
    checksum: str
    """xxh3-128 of its bytes, in hexadecimal digits."""
    sealed: bool = False
    """Its bytes never change any more while its data has the same incarnation."""
    modified_ns: int = 0
    """Last write, by its file system; 0: not known."""

    def is_still(self, *, sealed: bool, size: int, modified_ns: int) -> bool:
        """Whether the daemon's file of this name and incarnation still has these bytes.

        An unsealed file is only appended to or rewritten, so if neither its size nor its time
        changed, it was not written.
        """
        if self.sealed and sealed:
            return True
        return bool(modified_ns) and (self.bytes, self.modified_ns) == (size, modified_ns)


@dataclass(frozen=True, slots=True)
class Manifest:
    """One backup."""

    number: int
    """Rises in its directory; 0 where it has none yet."""
    incarnation: str
    """Of the data, in hexadecimal digits."""
    taken_at_us: int
    """By the daemon's wall clock."""
    version: str
    """Of the daemon."""
    store_format: int
    directory_format: int
    files: tuple[BackedUpFile, ...]
    ends: Mapping[int, Sequence[int]]
    """By storage topic: the end offset of each stream."""

    @property
    def bytes(self) -> int:
        """Of all its files."""
        return sum(each.bytes for each in self.files)


def checksum_of() -> "xxhash.xxh3_128":
    """What sums the bytes of a file."""
    return xxhash.xxh3_128()


def encoded(manifest: Manifest) -> bytes:
    """The manifest as a document."""
    values = {"format": MANIFEST_FORMAT, **asdict(manifest)}
    values["ends"] = {str(topic): list(ends) for topic, ends in manifest.ends.items()}
    document = {**values, "checksum": _sum(values)}
    return json.dumps(document, indent=1).encode() + b"\n"


def decoded(content: bytes, where: object) -> Manifest:
    """Read a document.

    Raises:
        BackupNewer: a newer version wrote it.
        BackupDamaged: it is not as it was written, or names what no backup has.
    """
    try:
        values = json.loads(content)
        found = values.pop("checksum")
        format_ = int(values.pop("format"))
    except _NO_MANIFEST as error:
        raise BackupDamaged(path=where, reason="it is no manifest") from error
    if format_ > MANIFEST_FORMAT:
        raise BackupNewer(path=where, found=format_, known=MANIFEST_FORMAT)
    if found != _sum({"format": format_, **values}):
        raise BackupDamaged(path=where, reason="its checksum does not match")
    try:
        return _read(values)
    except _NO_MANIFEST as error:
        raise BackupDamaged(path=where, reason=f"it says what no backup has: {error}") from error


def _read(values: dict[str, Any]) -> Manifest:
    files = tuple(BackedUpFile(**each) for each in values["files"])
    for each in files:
        if not (_NAME.fullmatch(each.name) and _CHECKSUM.fullmatch(each.checksum)):
            raise ValueError(f"a file {each.name!a}")
        if not (isinstance(each.bytes, int) and each.bytes >= 0):
            raise ValueError(f"a size of {each.name}")
        if not (isinstance(each.modified_ns, int) and each.modified_ns >= 0):
            raise ValueError(f"a time of {each.name}")
    names = [each.name for each in files]
    if len(set(names)) < len(names) or STORE_FILE not in names:
        raise ValueError("its files")
    ends = {int(topic): tuple(map(int, own)) for topic, own in values["ends"].items()}
    return Manifest(**{**values, "files": files, "ends": ends})


def _sum(values: Mapping[str, Any]) -> str:
    said = json.dumps(values, sort_keys=True, separators=(",", ":")).encode()
    return xxhash.xxh3_128_hexdigest(said)
