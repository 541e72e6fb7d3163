import errno
import os
from pathlib import Path

import pytest

from dssd.log.segment.file import SegmentId, SegmentPaths, SegmentWriter
from dssd.log.write.append_descriptors import AppendDescriptors


def files(directory: Path, count: int) -> list[SegmentWriter]:
    paths = SegmentPaths(directory)
    return [SegmentWriter.create(paths, SegmentId(7, number), 0) for number in range(count)]


def test_the_file_that_was_used_longest_ago_is_closed(tmp_path: Path) -> None:
    first, second, third = files(tmp_path, 3)
    held = AppendDescriptors(2)
    for file in (first, second, first, third):
        held.use(file)
    assert [file.is_open for file in (first, second, third)] == [True, False, True]
    held.use(second)
    second.write([b"again"], 5)
    assert not first.is_open
    assert len(held) == 2


def test_a_file_that_is_not_durable_yet_is_closed_last_and_synced_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dirty, clean, third, fourth = files(tmp_path, 4)
    held = AppendDescriptors(2)
    held.use(dirty)
    dirty.write([b"x"], 1)
    held.use(clean)
    held.use(third)
    assert [file.is_open for file in (dirty, clean, third)] == [True, False, True]
    third.write([b"x"], 1)

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "no room")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fdatasync", full)
        held.use(fourth)
        assert dirty.is_open, "what is not durable keeps its descriptor"
        assert third.is_open
    held.use(clean)
    assert not fourth.is_open
    assert len(held) <= 3


def test_without_a_descriptor_other_files_are_closed_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = files(tmp_path, 2)
    held = AppendDescriptors(5)
    held.use(first)
    usual, refusals = os.open, [errno.EMFILE]

    def short(path: Path, flags: int) -> int:
        if refusals:
            raise OSError(refusals.pop(), "too many")
        return usual(path, flags)

    monkeypatch.setattr(os, "open", short)
    held.use(second)
    assert [file.is_open for file in (first, second)] == [False, True]
    held.close(second)
    refusals.append(errno.EMFILE)
    with pytest.raises(OSError, match="too many"):
        held.use(first)
