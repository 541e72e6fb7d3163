import asyncio
import os
from pathlib import Path

import pytest

from dss_core.errors import BrokenInputLine, InputUnreadable
from dssctl.input_lines import INPUT_CHUNK_BYTES, INPUT_LINE_BYTES_MAX, lines, opened


async def lines_of(path: Path) -> list[tuple[int, bytes]]:
    with opened(str(path)) as descriptor:
        return [each async for each in lines(str(path), descriptor, lambda _size: None)]


async def test_every_line_has_its_number_and_no_line_end(tmp_path: Path) -> None:
    path = tmp_path / "input"
    path.write_bytes(b"a\n\nb\r\nlast without end")
    assert await lines_of(path) == [(1, b"a"), (2, b""), (3, b"b\r"), (4, b"last without end")]


async def test_an_empty_file_has_no_line(tmp_path: Path) -> None:
    path = tmp_path / "input"
    path.touch()
    assert await lines_of(path) == []


async def test_lines_cross_the_ends_of_chunks_whole(tmp_path: Path) -> None:
    path = tmp_path / "input"
    expected = [b"x" * (INPUT_CHUNK_BYTES // 3 + index) for index in range(10)]
    path.write_bytes(b"\n".join(expected) + b"\n")
    assert [line for _, line in await lines_of(path)] == expected


async def test_a_line_without_an_end_is_refused_before_it_fills_memory(tmp_path: Path) -> None:
    path = tmp_path / "input"
    path.write_bytes(b"first\n" + b"x" * (INPUT_LINE_BYTES_MAX + INPUT_CHUNK_BYTES))
    with pytest.raises(BrokenInputLine) as broken:
        await lines_of(path)
    assert broken.value.fields["line"] == "2"


async def test_a_line_of_a_pipe_is_given_out_before_the_pipe_is_closed() -> None:
    reading, writing = os.pipe()
    try:
        given = lines("-", reading, lambda _size: None)
        os.write(writing, b"one\ntw")
        assert await anext(given) == (1, b"one")
        waiting = asyncio.ensure_future(anext(given))
        await asyncio.sleep(0)
        assert not waiting.done()
        os.write(writing, b"o\n")
        assert await waiting == (2, b"two")
    finally:
        os.close(reading)
        os.close(writing)


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(InputUnreadable, match="No such file"), opened("/nowhere"):
        pass


async def test_a_folder_is_not_an_input(tmp_path: Path) -> None:
    with pytest.raises(InputUnreadable, match="directory"):
        await lines_of(tmp_path)
