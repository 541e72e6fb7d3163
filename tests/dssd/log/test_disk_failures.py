import asyncio
import errno
import os
from collections.abc import Callable
from typing import Any

import pytest

from dss_core.errors import DiskFull
from dss_core.ids import StreamId
from dssd.log.port import Append, Appended

Bench = Any
STREAM = StreamId(7, 0)


class FaultyDisk:
    """Makes a system call of the writer fail from now on, after it did what it usually does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, call: str, error: int) -> None:
        self._usual = getattr(os, call)
        self._error = error
        self.calls = 0
        self.broken = True
        monkeypatch.setattr(os, call, self)

    def __call__(self, *arguments: object) -> object:
        self.calls += 1
        result = self._usual(*arguments)
        if self.broken:
            raise OSError(self._error, os.strerror(self._error))
        return result


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EDQUOT])
@pytest.mark.parametrize("call", ["pwritev", "fdatasync"])
async def test_a_full_disk_refuses_frames_and_takes_them_when_there_is_room(
    bench: Bench,
    monkeypatch: pytest.MonkeyPatch,
    make_frame: Callable[..., bytes],
    call: str,
    error: int,
) -> None:
    await bench.put(b"before")
    (path,) = bench.segments()
    size = path.stat().st_size
    disk = FaultyDisk(monkeypatch, call, error)
    built = make_frame(b"refused", sequence=1)
    first, repeat = await bench.log.append([Append(STREAM, built, 1)] * 2)
    assert isinstance(first, DiskFull)
    assert isinstance(repeat, DiskFull), "a repeat must not be answered with what was taken back"
    assert path.stat().st_size == size
    assert await bench.payloads() == {0: b"before"}
    disk.broken = False
    stored = await bench.append(built)
    assert isinstance(stored, Appended)
    assert (stored.base_offset, stored.repeated) == (1, False)
    await bench.reopen(crash=True)
    assert await bench.payloads() == {0: b"before", 1: b"refused"}
    assert bench.failures == []


async def test_no_room_for_a_first_file_refuses_frames_until_there_is(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, make_frame: Callable[..., bytes]
) -> None:
    disk = FaultyDisk(monkeypatch, "fsync", errno.ENOSPC)
    assert isinstance(await bench.append(make_frame(b"a")), DiskFull)
    assert bench.segments() == []
    assert await bench.rows() == []
    disk.broken = False
    assert isinstance(await bench.append(make_frame(b"a")), Appended)


@pytest.mark.parametrize("call", ["pwritev", "fdatasync"])
async def test_any_other_error_stops_the_log_and_nothing_is_answered(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, make_frame: Callable[..., bytes], call: str
) -> None:
    await bench.put(b"before")
    disk = FaultyDisk(monkeypatch, call, errno.EIO)
    calls = [
        asyncio.create_task(bench.append(make_frame(b"%d" % n, sequence=n))) for n in range(1, 4)
    ]
    await bench.failed.wait()
    calls.append(asyncio.create_task(bench.append(make_frame(b"4", sequence=4))))
    done, pending = await asyncio.wait(calls, timeout=0.05)
    assert not done
    assert disk.calls == 1, "a descriptor that failed is not used again"
    assert len(bench.failures) == 1
    for task in pending:
        task.cancel()
    await asyncio.wait(calls)
    assert await bench.payloads() == {0: b"before"}
    disk.broken = False
    await bench.log.close()


async def test_a_disk_that_cannot_take_back_a_write_stops_the_log(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, make_frame: Callable[..., bytes]
) -> None:
    await bench.put(b"before")
    FaultyDisk(monkeypatch, "pwritev", errno.ENOSPC)
    FaultyDisk(monkeypatch, "ftruncate", errno.EIO)
    call = asyncio.create_task(bench.append(make_frame(b"a", sequence=1)))
    await bench.failed.wait()
    assert not call.done()
    call.cancel()
    await asyncio.wait([call])
    await bench.log.close()
