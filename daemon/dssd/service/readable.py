"""Whether the user of a service may read what its daemon is made of.

A daemon of a checkout in somebody's home starts for whoever made it, and for no other user: homes
are closed. Invariant: only the modes of files are looked at; lists of access beside them, which
could open or close a directory, are not, so whoever installs may say that it is right.
"""

import os
import pwd
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_READ, _ENTER = stat.S_IROTH, stat.S_IXOTH


@dataclass(frozen=True, slots=True)
class Reader:
    """A user, as modes tell them apart."""

    user: int
    groups: frozenset[int]

    @classmethod
    def named(cls, name: str) -> "Reader":
        """A user of this machine; one that is not there yet will be a stranger to all files."""
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            return cls(-1, frozenset())
        return cls(found.pw_uid, frozenset(os.getgrouplist(name, found.pw_gid)))

    def stopped_at(self, path: Path) -> Path | None:
        """The first directory on the way that the user may not enter, or the file itself, which
        it may not read; None where it may, or where nothing is there.
        """
        for way in dict.fromkeys((path.absolute(), path.resolve())):
            for each, wanted in _steps(way):
                if not self._may(each, wanted):
                    return each
        return None

    def _may(self, path: Path, wanted: int) -> bool:
        try:
            found = path.stat()
        except OSError:
            return True  # whoever reads it says what is wrong with it
        if self.user == 0:
            return True
        if found.st_uid == self.user:
            return bool(found.st_mode & wanted << 6)
        if found.st_gid in self.groups:
            return bool(found.st_mode & wanted << 3)
        return bool(found.st_mode & wanted)


def _steps(path: Path) -> Iterator[tuple[Path, int]]:
    for each in reversed(path.parents):
        yield each, _ENTER
    yield path, _READ
