"""What a process does to files, as values.

Paths are relative to a root, "" is the root itself. A handle is the number of one opening of a file
or a directory; it is never used again. Invariant: values only.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OpenFile:
    """Opens a file or a directory; may create a file."""

    handle: int
    path: str
    create: bool = False
    truncate: bool = False


@dataclass(frozen=True, slots=True)
class MakeDirectory:
    """Creates a directory."""

    path: str


@dataclass(frozen=True, slots=True)
class Write:
    """Writes bytes at an offset."""

    handle: int
    offset: int
    content: bytes


@dataclass(frozen=True, slots=True)
class Resize:
    """Sets a file's end: bytes behind it are gone, new ones read as zeros."""

    handle: int
    size: int


@dataclass(frozen=True, slots=True)
class Reserve:
    """Reserves room up to an offset; the file then ends there at least."""

    handle: int
    size: int


@dataclass(frozen=True, slots=True)
class Rename:
    """Moves a name, over another one if there is one."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Unlink:
    """Removes a name."""

    path: str


@dataclass(frozen=True, slots=True)
class Sync:
    """Makes durable what was done to a file, or to the names in a directory."""

    handle: int


@dataclass(frozen=True, slots=True)
class SyncFailed:
    """A sync of a file failed: what it was to make durable counts as clean, and later syncs need
    not write it. Nobody knows how much of it arrived."""

    handle: int


@dataclass(frozen=True, slots=True)
class Rot:
    """Flips a bit of a file on the disk, and in whatever is on its way there."""

    path: str
    offset: int
    bit: int


@dataclass(frozen=True, slots=True)
class Tell:
    """Something was told to the outside: it must stay true."""

    text: str


Operation = (
    OpenFile
    | MakeDirectory
    | Write
    | Resize
    | Reserve
    | Rename
    | Unlink
    | Sync
    | SyncFailed
    | Rot
    | Tell
)


@dataclass(frozen=True, slots=True)
class Step:
    """An operation, and when it happened, in lines of a trace."""

    operation: Operation
    began: int
    ended: int
