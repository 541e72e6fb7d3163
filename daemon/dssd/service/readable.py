"""Checks that the user of a service can read the installed daemon.

A daemon installed in a home directory starts for the owner of that home, but for no other user,
because homes are closed. Invariant: only file modes are checked, not access control lists, which
may allow or deny more; so --force overrides the check.
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
    """A user as file modes see it: user id and groups."""

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
        """The first directory of the path that the user may not enter, or the file itself if it is
        unreadable; None if it is readable or missing.
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
