"""Which system calls a fault strikes, and how much of a struck write arrives.

Invariant: the same chance and the same calls give the same strikes. It must not know files.
"""

from dataclasses import dataclass
from random import Random
from typing import Literal

Kind = Literal["kill", "eio", "full", "short"]
"""The process is killed, the disk fails, the disk is full, or a write is cut short without an
error."""

SYNCS = frozenset({"fsync", "fdatasync"})
WRITES = frozenset({"pwritev"})
NAMES = frozenset({"open", "rename", "unlink", "mkdir"})
"""An open that creates a file."""
SIZES = frozenset({"ftruncate", "posix_fallocate"})
CALLS = SYNCS | WRITES | NAMES | SIZES
COMMIT = "commit"
"""A commit of the store: no system call here, but it needs room."""
NEEDS_ROOM = WRITES | SYNCS | {"open", "rename", "mkdir", "posix_fallocate", COMMIT}


@dataclass(slots=True)
class Armed:
    """A fault that waits: it lets some calls pass, then strikes a number of calls."""

    kind: Kind
    calls: frozenset[str]
    passing: int
    strikes: int


class Faults:
    """The faults of one life."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.struck_kinds: set[Kind] = set()
        self._armed: list[Armed] = []

    def arm(self, armed: Armed) -> None:
        """One more fault."""
        self._armed.append(armed)

    def disarm(self) -> None:
        """Disarm all faults, and give the disk room again."""
        self._armed.clear()

    def struck(self, call: str) -> Kind | None:
        """The fault that strikes this call."""
        kind: Kind | None = None
        for armed in self._armed:
            if call not in armed.calls or not armed.strikes:
                continue
            if armed.passing:
                armed.passing -= 1
            elif kind is None:
                armed.strikes -= 1
                kind = armed.kind
        if kind is not None:
            self.struck_kinds.add(kind)
        return kind

    def part_of(self, size: int) -> int:
        """How many bytes of a struck write arrive: often none."""
        return self.chance.randrange(size) if size and self.chance.random() < 0.5 else 0
