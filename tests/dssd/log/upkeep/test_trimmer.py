"""What must stay when files go."""

import errno
from collections.abc import Callable
from typing import Any

import pytest

from dss_core.ids import StreamId
from dssd.log.port import Appended

Bench = Any
STREAM = StreamId(7, 0)


async def test_the_only_snapshot_of_the_producers_does_not_go_with_a_trimmed_file(
    bench: Bench, make_frame: Callable[..., bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A roll that found no room for one leaves it beside the file before."""

    def full(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, "full")

    early = make_frame(b"early", producer=b"who is trimmed  ")
    first = await bench.append(early)
    with monkeypatch.context() as patched:
        patched.setattr("dssd.log.resume.snapshots.store", full)
        await bench.roll()
    await bench.append(make_frame(b"late", producer=b"who comes later "))
    await bench.log.trim(STREAM, 1)
    await bench.reopen(crash=True)
    assert bench.log.bounds(STREAM).start == 1
    repeated = await bench.append(early)
    assert isinstance(repeated, Appended), repeated
    assert (repeated.base_offset, repeated.repeated) == (first.base_offset, True)


async def test_files_stay_as_long_as_there_is_no_room_for_a_snapshot(
    bench: Bench, make_frame: Callable[..., bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, "full")

    await bench.append(make_frame(b"early"))
    [oldest] = bench.segments()
    with monkeypatch.context() as patched:
        patched.setattr("dssd.log.resume.snapshots.store", full)
        await bench.roll()
        await bench.log.trim(STREAM, 1)
        assert oldest in bench.segments()
    await bench.log.trim(STREAM, 1)
    assert oldest not in bench.segments()
