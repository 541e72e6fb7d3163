"""Copies of more than one piece: each piece is on the disk, or the copy is none."""

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from dss_core.build import build_frame
from dss_core.columns import Columns
from dss_core.producer_ids import NO_PRODUCER
from dssd.log.adopt.copied_frames import Copy, Copying
from dssd.log.limits import ADOPT_WRITE_BYTES
from dssd.log.port import Frames
from dssd.log.segment.file import HEADER_BYTES

PIECES = 3


def frame() -> bytes:
    columns = Columns(payloads=[bytes(500_000)] * 2, subjects="orders")
    return build_frame(columns, partition=0, producer_id=NO_PRODUCER, sequence=0)


FRAME = frame()


def frames() -> Iterator[Sequence[bytes]]:
    """As many as make three pieces and a rest."""
    for _ in range(PIECES * (ADOPT_WRITE_BYTES // len(FRAME) + 1) + 1):
        yield [FRAME]


def test_a_copy_holds_its_frames_in_their_order(tmp_path: Path) -> None:
    copy = copied(tmp_path / "copy-0.tmp")
    copy.close()
    content = (tmp_path / "copy-0.tmp").read_bytes()
    assert content[HEADER_BYTES:] == FRAME * len(copy.frames)
    assert len(content) == copy.size


def copied(path: Path, given: Frames = frames) -> Copy:
    copying = Copying(path, given)
    try:
        while copying.write_piece():
            pass
    except BaseException:
        copying.abandon()
        raise
    return copying.copy


def opened_in(folder: Path) -> list[Path]:
    """What this process holds open there, what is removed already too."""
    found = []
    for descriptor in Path("/proc/self/fd").iterdir():
        # The listing's own descriptor is closed again.
        with suppress(FileNotFoundError):
            found.append(descriptor.readlink())
    return [file for file in found if file.is_relative_to(folder)]


@pytest.mark.parametrize("failing", range(PIECES))
def test_a_piece_that_the_disk_refuses_ends_the_copy_though_later_ones_are_synced(
    failing: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync, calls = os.fdatasync, iter(range(PIECES + 1))

    def refused_once(descriptor: int) -> None:
        # The kernel tells a failure once; the next sync of the file succeeds.
        if next(calls) == failing:
            raise OSError(errno.EIO, "refused")
        sync(descriptor)

    monkeypatch.setattr(os, "fdatasync", refused_once)
    with pytest.raises(OSError, match="refused"):
        copied(tmp_path / "copy-0.tmp")
    assert list(tmp_path.iterdir()) == []
    assert opened_in(tmp_path) == []


def test_frames_that_are_refused_leave_no_copy_and_no_sync_under_way(tmp_path: Path) -> None:
    def broken() -> Iterator[Sequence[bytes]]:
        yield from frames()
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        copied(tmp_path / "copy-0.tmp", broken)
    assert list(tmp_path.iterdir()) == []
    assert opened_in(tmp_path) == []
