"""The calls of the log: what is recorded of them, and how faults strike."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from dss_sim.log.calls import Calls, called
from dss_sim.log.faults import NEEDS_ROOM, SYNCS, WRITES, Armed, Faults, Kind
from dss_sim.log.one_thread import Died
from dss_sim.power_loss.crashes import final_image
from dss_sim.power_loss.image_files import read_image
from dss_sim.power_loss.operations import (
    MakeDirectory,
    OpenFile,
    Operation,
    Rename,
    Reserve,
    Resize,
    Step,
    Sync,
    SyncFailed,
    Unlink,
    Write,
)
from dssd.log.segment.file import write_all

NEW = os.O_RDWR | os.O_CREAT


class Traced:
    """Calls below a root, and their steps."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.steps: list[Step] = []
        self.faults = Faults(Random(0))
        self.calls = Calls(root, self.steps, self.faults)

    def operations(self) -> list[Operation]:
        return [step.operation for step in self.steps]

    def arm(self, kind: Kind, calls: frozenset[str], passing: int = 0, strikes: int = 1) -> None:
        self.faults.arm(Armed(kind, calls, passing, strikes))

    def file(self) -> int:
        return os.open(self.root / "f", NEW)


@pytest.fixture
def traced(tmp_path: Path) -> Iterator[Traced]:
    one = Traced(tmp_path)
    with called(one.calls):
        yield one


def test_every_call_is_done_and_recorded(traced: Traced) -> None:
    root = traced.root
    (root / "folder").mkdir()
    fd = traced.file()
    os.pwritev(fd, [b"ab", memoryview(b"c")], 5)
    os.posix_fallocate(fd, 0, 20)
    os.ftruncate(fd, 7)
    os.fdatasync(fd)
    (root / "f").rename(root / "folder" / "g")
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(folder)
    (root / "folder" / "g").unlink()
    assert traced.operations() == [
        MakeDirectory("folder"),
        OpenFile(1, "f", create=True),
        Write(1, 5, b"abc"),
        Reserve(1, 20),
        Resize(1, 7),
        Sync(1),
        Rename("f", "folder/g"),
        OpenFile(7, ""),
        Sync(7),
        Unlink("folder/g"),
    ]
    assert read_image(root) == final_image(traced.steps)


def test_reading_and_what_is_not_below_the_root_is_not_recorded(
    traced: Traced, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("other")
    fd = os.open(other / "f", NEW)
    os.pwritev(fd, [b"abc"], 0)
    os.fsync(fd)
    os.close(fd)
    (other / "f").rename(other / "g")
    (other / "g").unlink()
    os.close(os.open(traced.root, os.O_RDONLY))
    assert traced.operations() == []


def test_a_call_that_the_disk_does_not_know_fails(traced: Traced) -> None:
    fd = traced.file()
    with pytest.raises(AssertionError, match="does not know write"):
        os.write(fd, b"abc")
    with pytest.raises(AssertionError, match="does not know replace"):
        (traced.root / "f").replace(traced.root / "g")


def test_a_sync_that_fails_says_so_and_is_recorded(traced: Traced) -> None:
    fd = traced.file()
    os.pwritev(fd, [b"abc"], 0)
    traced.arm("eio", SYNCS)
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        os.fdatasync(fd)
    os.fdatasync(fd)
    assert traced.operations()[2:] == [SyncFailed(0), Sync(0)]


def test_who_else_has_the_file_open_hears_of_a_sync_that_failed_once(traced: Traced) -> None:
    fd, other = traced.file(), os.open(traced.root / "f", os.O_RDONLY)
    os.pwritev(fd, [b"abc"], 0)
    traced.arm("eio", SYNCS)
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        os.fdatasync(other)
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        os.fdatasync(fd)
    os.fdatasync(fd)
    os.fdatasync(other)


def test_a_full_disk_takes_what_lies_there_already(traced: Traced) -> None:
    fd = traced.file()
    os.pwritev(fd, [b"abc"], 0)
    os.fsync(fd)
    traced.arm("full", NEEDS_ROOM, strikes=100)
    assert os.pwritev(fd, [b"abd"], 0) == 3
    os.fsync(fd)
    # A part of what is new may find room, once; then there is none.
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        write_all(fd, [bytes(9)], 1)
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        os.open(traced.root / "g", NEW)
    traced.faults.disarm()
    assert os.pwritev(fd, [b"abcd"], 1) == 4


def test_a_short_write_says_how_much_arrived(traced: Traced) -> None:
    fd = traced.file()
    traced.arm("short", WRITES, passing=1)
    assert os.pwritev(fd, [b"abcd"], 0) == 4
    written = os.pwritev(fd, [b"efgh"], 4)
    assert 1 <= written < 4
    assert read_image(traced.root) == final_image(traced.steps)


def test_nothing_is_done_after_a_kill(traced: Traced) -> None:
    fd = traced.file()
    traced.arm("kill", SYNCS)
    with pytest.raises(Died):
        os.fsync(fd)
    before = traced.operations()
    for call in (lambda: os.pwritev(fd, [b"abc"], 0), (traced.root / "f").unlink):
        with pytest.raises(Died):
            call()
    assert traced.operations() == before


def test_descriptors_are_closed_with_the_process(tmp_path: Path) -> None:
    traced = Traced(tmp_path)
    with called(traced.calls):
        fd = traced.file()
    with pytest.raises(OSError, match=os.strerror(errno.EBADF)):
        os.fstat(fd)
    assert os.open.__name__ == "open"
