"""Looks, while the daemon serves, whether clients still find its unix sockets.

Somebody may tidy up where they are. The daemon would go on listening at a socket that has no name
any more: who is connected would go on, nobody else would get in, and nothing would tell why. gRPC
takes no address twice, so a second name of each socket is kept beside it.

Invariant: whatever else has the name of a socket is left alone.
"""

import asyncio
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from dssd.addresses import Address, UnixAddress
from dssd.events.kinds import SOCKET_LOST, SOCKET_REMOVED
from dssd.events.model import Event, EventKind, Note
from dssd.ownership.directory_guard import DIRECTORY_LOOK_S

_PUT_BACK = "Somebody removed this socket; the daemon put it back."
_LOST = (
    "Somebody removed or replaced this socket, and it cannot be put back: {reason}. Who is "
    "connected goes on, and nobody else gets in here until a restart of the daemon."
)


class SocketKeeper:
    """Made once the addresses are bound."""

    def __init__(self, addresses: Sequence[Address], note: Note) -> None:
        sockets = [each.path for each in addresses if isinstance(each, UnixAddress)]
        self._kept = [_KeptSocket(path, note) for path in sockets]

    async def run(self) -> NoReturn:
        """Look again and again."""
        try:
            while True:
                await asyncio.sleep(DIRECTORY_LOOK_S)
                self.look()
        finally:
            self.let_go()

    def let_go(self) -> None:
        """The sockets are about to be closed, and their names go: put none back from now on."""
        kept, self._kept = self._kept, []
        for each in kept:
            each.let_go()

    def look(self) -> None:
        """Look once."""
        for each in self._kept:
            each.look()


class _KeptSocket:
    def __init__(self, path: Path, note: Note) -> None:
        self._path = path
        self._second = path.with_name(f".kept.{path.name}")
        self._note = note
        self._is_lost = False
        self._inode = _inode_of(path)
        with suppress(OSError):  # not on every file system; that is told once it matters
            # A daemon that was killed left its own.
            self._second.unlink(missing_ok=True)
            os.link(path, self._second)

    def look(self) -> None:
        if _inode_of(self._path) == self._inode:
            self._is_lost = False
            return
        try:
            os.link(self._second, self._path)
        except OSError as error:
            if not self._is_lost:
                self._is_lost = True
                self._tell(SOCKET_LOST, _LOST.format(reason=error.strerror))
        else:
            self._is_lost = False
            self._tell(SOCKET_REMOVED, _PUT_BACK)

    def let_go(self) -> None:
        # In a directory that was replaced there may be another daemon's.
        if _inode_of(self._second) == self._inode:
            with suppress(OSError):  # the next daemon here takes it away
                self._second.unlink()

    def _tell(self, kind: EventKind, sentence: str) -> None:
        self._note(Event(kind, str(UnixAddress(self._path)), sentence))


def _inode_of(path: Path) -> tuple[int, int] | None:
    try:
        file = path.lstat()
    except OSError:
        return None
    return file.st_dev, file.st_ino
