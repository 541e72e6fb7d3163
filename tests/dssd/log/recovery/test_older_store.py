from pathlib import Path

import pytest

from dss_core.errors import ExitCode, StoreOlderThanLog
from dssd.log.recovery.older_store import files_unknown_at, refuse_older_store
from dssd.log.segment.file import SegmentId, SegmentPaths

LAST_GIVEN = 5


def with_files(home: Path, *numbers: int) -> SegmentPaths:
    paths = SegmentPaths(home)
    for number in numbers:
        paths.segment(SegmentId(1, number)).write_bytes(b"what it holds is not looked at")
    return paths


def test_a_store_as_new_as_its_files_knows_all_of_them(tmp_path: Path) -> None:
    paths = with_files(tmp_path, 1, LAST_GIVEN)
    assert files_unknown_at(paths, LAST_GIVEN) == []
    refuse_older_store(paths, LAST_GIVEN)


def test_an_older_store_is_refused_by_the_oldest_file_that_it_cannot_know(tmp_path: Path) -> None:
    paths = with_files(tmp_path, 12, LAST_GIVEN + 1, LAST_GIVEN)
    before = {each: each.read_bytes() for each in tmp_path.iterdir()}
    with pytest.raises(StoreOlderThanLog) as refused:
        refuse_older_store(paths, LAST_GIVEN)
    oldest = paths.segment(SegmentId(1, LAST_GIVEN + 1)).name
    assert refused.value.fields == {"files": "2", "first": oldest}
    assert (refused.value.code, refused.value.exit_code) == ("DSS4003", ExitCode.IO_ERROR)
    assert {each: each.read_bytes() for each in tmp_path.iterdir()} == before


def test_what_is_no_segment_file_is_no_sign_of_a_newer_store(tmp_path: Path) -> None:
    paths = with_files(tmp_path, LAST_GIVEN)
    (tmp_path / "notes-99.seg").touch()
    newer = paths.segment(SegmentId(1, 99)).name
    (tmp_path / f"{newer}.bak").touch()
    refuse_older_store(paths, LAST_GIVEN)
