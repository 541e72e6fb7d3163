import errno
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from dss_core.errors import LogUnreadable
from dssd.log.read.file_reader import FileReader


@pytest.fixture
async def reader() -> AsyncIterator[FileReader]:
    made = FileReader(descriptors_max=2)
    yield made
    made.close()


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_a_part_of_a_file_is_read_and_counted(reader: FileReader, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    assert await reader.read(path, 3, 4) == b"3456"
    assert reader.bytes_read == 4


async def test_a_read_past_the_end_gives_what_there_is(reader: FileReader, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    assert await reader.read(path, 8, 100) == b"89"
    assert await reader.read(path, 50, 100) == b""
    assert await reader.read(tmp_path / "missing", 0, 10) == b""


@pytest.mark.parametrize("error", [errno.EAGAIN, errno.EOPNOTSUPP])
async def test_what_the_page_cache_lacks_comes_from_a_thread(
    reader: FileReader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    usual = os.preadv
    waiting: list[int] = []

    def cold(fd: int, buffers: list[Any], position: int, flags: int = 0) -> int:
        if flags & os.RWF_NOWAIT:
            raise OSError(error, os.strerror(error))
        waiting.append(position)
        return usual(fd, [buffers[0][:3]], position)

    monkeypatch.setattr(os, "preadv", cold)
    assert await reader.read(path, 1, 8) == b"12345678"
    assert waiting == [1, 4, 7]


async def test_a_half_cached_part_is_completed_by_a_thread(
    reader: FileReader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    usual = os.preadv

    def half(fd: int, buffers: list[Any], position: int, flags: int = 0) -> int:
        if flags & os.RWF_NOWAIT:
            return usual(fd, [buffers[0][:4]], position)
        return usual(fd, buffers, position)

    monkeypatch.setattr(os, "preadv", half)
    assert await reader.read(path, 0, 10) == b"0123456789"


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOMEM, errno.ESTALE, errno.ENXIO])
async def test_a_read_that_fails_says_so_and_may_be_tried_again(
    reader: FileReader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")

    def broken(*_: object) -> int:
        raise OSError(error, "broken")

    with monkeypatch.context() as while_broken:
        while_broken.setattr(os, "preadv", broken)
        with pytest.raises(LogUnreadable, match="file cannot be read now: broken"):
            await reader.read(path, 0, 10)
    assert await reader.read(path, 0, 10) == b"0123456789"


async def test_a_file_that_cannot_be_opened_is_not_taken_for_a_missing_one(
    reader: FileReader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")

    def broken(*_: object) -> int:
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(os, "open", broken)
    with pytest.raises(LogUnreadable):
        await reader.read(path, 0, 10)


async def test_a_read_anew_is_a_read(reader: FileReader, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    assert await reader.read_anew(path, 2, 3) == b"234"
    assert await reader.read_anew(tmp_path / "missing", 0, 1) == b""


async def test_descriptors_stay_within_their_bound(reader: FileReader, tmp_path: Path) -> None:
    await reader.read(tmp_path / "missing", 0, 1)
    before = open_descriptors()
    for number in range(10):
        path = tmp_path / str(number)
        path.write_bytes(b"%d" % number)
        assert await reader.read(path, 0, 1) == b"%d" % number
    assert open_descriptors() - before <= 2
    for number in range(10):
        reader.drop(tmp_path / str(number))
    assert open_descriptors() == before
