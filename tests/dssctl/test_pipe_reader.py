import asyncio
import os
import select
from collections.abc import Iterator
from contextlib import suppress

import pytest

from dssctl.pipe_reader import PipeReader

Pipe = tuple[int, int]


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    reading, writing = os.pipe()
    yield reading, writing
    os.close(writing)
    with suppress(OSError):  # a test closed it
        os.close(reading)


async def test_what_lies_in_the_pipe_is_not_taken_until_it_is_read(pipe: Pipe) -> None:
    reading, writing = pipe
    os.write(writing, b"record\n")
    waiting = asyncio.create_task(PipeReader(writing).taken())
    await asyncio.sleep(0)
    assert not waiting.done()
    assert os.read(reading, 100) == b"record\n"
    await waiting


async def test_more_than_a_page_in_the_pipe_is_waited_for_too(pipe: Pipe) -> None:
    reading, writing = pipe
    os.write(writing, bytes(20_000))
    waiting = asyncio.create_task(PipeReader(writing).taken())
    await asyncio.sleep(0)
    assert os.read(reading, 19_999) == bytes(19_999)
    await asyncio.sleep(0)
    assert not waiting.done()
    os.read(reading, 1)
    await waiting


async def test_what_a_reader_that_went_left_in_the_pipe_is_not_taken(pipe: Pipe) -> None:
    reading, writing = pipe
    os.write(writing, b"record\n")
    os.close(reading)
    with pytest.raises(BrokenPipeError):
        await PipeReader(writing).taken()


class LastMoment:
    """A poll before which the reader takes everything and goes."""

    def __init__(self, pipe: Pipe) -> None:
        self._reading, self._writing = pipe

    def poll(self, _patience_ms: int) -> list[tuple[int, int]]:
        os.read(self._reading, 100)
        os.close(self._reading)
        asked = select.poll()
        asked.register(self._writing, select.POLLOUT)
        return asked.poll(0)


async def test_what_a_reader_took_at_the_last_moment_is_taken(
    pipe: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, writing = pipe
    os.write(writing, b"record\n")
    reader = PipeReader(writing)
    monkeypatch.setattr(reader, "_writable", LastMoment(pipe))
    await reader.taken()


async def test_a_file_has_what_was_written() -> None:
    descriptor = os.open(os.devnull, os.O_WRONLY)
    await PipeReader(descriptor).taken()
    os.close(descriptor)
