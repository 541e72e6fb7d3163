"""Staged files: what their writer gives, and what their reader refuses."""

from pathlib import Path

import pyarrow as pa
import pytest

from dss_core.arrow_layout import HEADERS_TYPE
from dss_core.columns import Columns
from dss_core.decode import decode
from dss_core.errors import DssError, IllegalArgument, IllegalSubject, RecordTooLarge
from dss_core.frame import examine
from dss_core.limits import HEADER_BYTES_MAX, HEADERS_MAX, KEY_BYTES_MAX, RECORD_BYTES_MAX
from dss_core.producer_ids import NO_PRODUCER
from dss_core.staged import (
    STAGED_HEAD_BYTES,
    BadStagedFile,
    StagedFile,
    StagedFor,
    StagedWriter,
    chunk_of_name,
    staged_frames,
)

FOR = StagedFor(job_id=7, chunk=3, storage_topic_id=2)


def _staged(directory: Path, records: int = 100) -> StagedFile:
    with StagedWriter(directory, FOR) as staged:
        for partition in (0, 1):
            payloads = [b"%d of %d" % (row, partition) for row in range(records)]
            staged.add(Columns(payloads=payloads, subjects="orders/new"), partition)
        return staged.finish()


def test_a_staged_file_gives_the_frames_that_were_added_in_their_order(tmp_path: Path) -> None:
    file = _staged(tmp_path)

    frames = _frames(tmp_path, file)

    verified = [examine(frame) for frame in frames]
    assert [each.header.partition for each in verified] == [0, 1]
    assert {each.header.producer_id for each in verified} == {NO_PRODUCER}
    assert sum(each.header.records for each in verified) == file.records == 200
    assert decode(frames[1], checksums=False).payloads[99] == b"99 of 1"
    assert chunk_of_name(file.name) == FOR.chunk


def _frames(directory: Path, file: StagedFile) -> list[bytes]:
    read = staged_frames(directory / file.name, FOR, file.bytes)
    return [bytes(frame) for frames in read for frame in frames]


@pytest.mark.parametrize(
    ("column", "value", "refused"),
    [
        ("payloads", bytes(RECORD_BYTES_MAX + 1), RecordTooLarge),
        ("keys", bytes(KEY_BYTES_MAX + 1), IllegalArgument),
        ("headers", [("n", bytes(HEADER_BYTES_MAX))], IllegalArgument),
        ("headers", [("n", b"")] * (HEADERS_MAX + 1), IllegalArgument),
    ],
)
def test_a_record_beyond_a_limit_is_refused_wherever_it_stands_in_arrow_columns(
    tmp_path: Path, column: str, value: object, refused: type[DssError]
) -> None:
    rows = 2_000
    values: dict[str, list[object]] = {
        "payloads": [bytes(200)] * rows,
        "keys": [b"k"] * rows,
        "headers": [[("n", b"v")]] * rows,
    }
    values[column][-1] = value
    columns = Columns(
        payloads=pa.array(values["payloads"], pa.binary()),
        keys=pa.array(values["keys"], pa.binary()),
        subjects="orders/new",
        headers=pa.array(values["headers"], HEADERS_TYPE),
    )
    with pytest.raises(refused), StagedWriter(tmp_path, FOR) as staged:
        staged.add(columns, 0)
    assert list(tmp_path.iterdir()) == []


def test_frames_larger_than_one_read_come_whole(tmp_path: Path) -> None:
    large = bytes(1_000_000)
    with StagedWriter(tmp_path, FOR) as staged:
        for _ in range(12):
            staged.add(Columns(payloads=[large], subjects="a"), 0)
        file = staged.finish()

    frames = _frames(tmp_path, file)

    assert [examine(frame).header.records for frame in frames] == [1] * 12


def test_a_writer_that_fails_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(IllegalSubject), StagedWriter(tmp_path, FOR) as staged:
        staged.add(Columns(payloads=[b"x"], subjects="a/#"), 0)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("wrong", [(8, 3, 2), (7, 4, 2), (7, 3, 1)])
def test_a_file_for_something_else_is_refused(tmp_path: Path, wrong: tuple[int, int, int]) -> None:
    file = _staged(tmp_path)
    with pytest.raises(BadStagedFile, match="it is for"):
        list(staged_frames(tmp_path / file.name, StagedFor(*wrong), file.bytes))


def test_a_file_of_another_length_than_was_said_is_refused(tmp_path: Path) -> None:
    file = _staged(tmp_path)
    with pytest.raises(BadStagedFile, match="bytes, not"):
        list(staged_frames(tmp_path / file.name, FOR, file.bytes + 1))


def test_a_file_that_was_cut_short_is_refused_at_every_byte(tmp_path: Path) -> None:
    file = _staged(tmp_path, records=2)
    path = tmp_path / file.name
    whole = path.read_bytes()
    starts = [STAGED_HEAD_BYTES + (len(whole) - STAGED_HEAD_BYTES) // 2, STAGED_HEAD_BYTES]
    for size in range(len(whole)):
        if size in starts:  # whole, with fewer frames: the count of records tells
            continue
        path.write_bytes(whole[:size])
        with pytest.raises(BadStagedFile):
            list(staged_frames(path, FOR, size))


@pytest.mark.parametrize("at", [0, 9, 13, 17, 25, 29, 33])
def test_a_flipped_bit_in_the_head_is_noticed(tmp_path: Path, at: int) -> None:
    file = _staged(tmp_path)
    path = tmp_path / file.name
    content = bytearray(path.read_bytes())
    content[at] ^= 4
    path.write_bytes(content)
    with pytest.raises(BadStagedFile):
        list(staged_frames(path, FOR, file.bytes))


@pytest.mark.parametrize("name", ["x.staged", "00000001-1.staged", "../00000001-" + "a" * 16])
def test_a_name_of_another_form_says_no_chunk(name: str) -> None:
    assert chunk_of_name(name) is None
