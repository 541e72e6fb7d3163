"""What a process does to files, as values.

Paths are relative to a root, "" is the root itself. A handle is the number of one opening of a
file or a directory; it is never used again. Invariant: values only.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OpenFile:
    """A file or a directory is opened; a file may come to be."""

    handle: int
    path: str
    create: bool = False
    truncate: bool = False


@dataclass(frozen=True, slots=True)
class MakeDirectory:
    """A directory comes to be."""

    path: str


@dataclass(frozen=True, slots=True)
class Write:
    """Bytes are put at an offset."""

    handle: int
    offset: int
    content: bytes


@dataclass(frozen=True, slots=True)
class Resize:
    """The file ends here; what lay behind is gone, what is new reads as zeros."""

    handle: int
    size: int


@dataclass(frozen=True, slots=True)
class Reserve:
    """The file ends here at least, and has the room."""

    handle: int
    size: int


@dataclass(frozen=True, slots=True)
class Rename:
    """A name moves, over another one if there is."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Unlink:
    """A name goes."""

    path: str


@dataclass(frozen=True, slots=True)
class Sync:
    """What was done to the file, or to the names in the directory, is durable."""

    handle: int


@dataclass(frozen=True, slots=True)
class SyncFailed:
    """A sync of a file failed: what it was to make durable counts as clean, and no later sync has
    to write it. Nobody knows how much of it arrived."""

    handle: int


@dataclass(frozen=True, slots=True)
class Rot:
    """A bit of a file flips on the disk, and in whatever is on its way there."""

    path: str
    offset: int
    bit: int


@dataclass(frozen=True, slots=True)
class Tell:
    """Something is told to the outside: it must stay true."""

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
