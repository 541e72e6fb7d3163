"""Tells by events when the disk is too full for publishing, and when it has room again.

Invariant: a nearly full disk, with room for small frames only, causes one event: the disk counts as
having room once no frame was refused for a while. The log refuses frames; this module only
observes.
"""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from dssd.events.kinds import DISK_FULL, DISK_ROOM
from dssd.events.model import Event, EventKind, Note

DISK_LOOK_S = 1.0
"""How often the disk is checked: soon enough for an operator on call."""

DISK_ROOM_AFTER_LOOKS = 10
"""Checks without a refusal before the disk counts as having room: on a nearly full disk only some
frames are refused."""


_LOG = logging.getLogger(__name__)


class DiskRoom:
    """Of one data directory; ``is_full`` says whether frames are refused now."""

    def __init__(self, directory: Path, is_full: Callable[[], bool], note: Note) -> None:
        self._directory = directory
        self._is_full = is_full
        self._note = note
        self._told_full = False
        self._looks_with_room = 0

    async def run(self) -> NoReturn:
        """Look again and again."""
        while True:
            self.look()
            await asyncio.sleep(DISK_LOOK_S)

    def look(self) -> None:
        """Look once."""
        is_full = self._is_full()
        self._looks_with_room = 0 if is_full else self._looks_with_room + 1
        if is_full and not self._told_full:
            self._told_full = True
            told = f"The disk of {self._directory} is full: publishing is refused, reads go on."
            self._tell(DISK_FULL, told, logging.ERROR)
        elif self._told_full and self._looks_with_room >= DISK_ROOM_AFTER_LOOKS:
            self._told_full = False
            told = f"There is room on the disk of {self._directory} again: publishing goes on."
            self._tell(DISK_ROOM, told, logging.INFO)

    def _tell(self, kind: EventKind, sentence: str, level: int) -> None:
        _LOG.log(level, "%s", sentence, extra={"event": kind.code, "fields": {}})
        self._note(Event(kind, str(self._directory), sentence))
