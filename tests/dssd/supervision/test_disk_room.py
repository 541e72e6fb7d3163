"""Whether a full disk is told, and the room that comes back."""

from pathlib import Path

from dssd.events.model import Event
from dssd.supervision.disk_room import DISK_ROOM_AFTER_LOOKS, DiskRoom

FULL = [True]
ROOM = [False]


def told(looks: list[bool]) -> list[str]:
    events: list[Event] = []
    now = iter(looks)
    room = DiskRoom(Path("/d"), lambda: next(now), events.append)
    for _ in looks:
        room.look()
    return [each.kind.code for each in events]


def test_a_disk_with_room_is_not_told_of() -> None:
    assert told(ROOM * 30) == []


def test_a_full_disk_is_told_at_once_and_once() -> None:
    assert told(ROOM + FULL * 30) == ["disk.full"]


def test_room_is_told_once_nothing_was_refused_for_a_while() -> None:
    assert told(FULL + ROOM * (DISK_ROOM_AFTER_LOOKS - 1)) == ["disk.full"]
    assert told(FULL + ROOM * 30) == ["disk.full", "disk.room"]


def test_at_the_brink_a_full_disk_is_told_once() -> None:
    assert told((FULL + ROOM * (DISK_ROOM_AFTER_LOOKS - 1)) * 5) == ["disk.full"]


def test_a_disk_that_fills_up_again_is_told_again() -> None:
    looks = FULL + ROOM * DISK_ROOM_AFTER_LOOKS
    assert told(looks * 2) == ["disk.full", "disk.room"] * 2
