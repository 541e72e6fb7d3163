"""Staged files that come over the wire: whole, behind what is there, and no more than may be."""

from pathlib import Path

import pytest
from xxhash import xxh3_64_intdigest

from dss_core.errors import JobFenced, StagedFileRefused
from dssd.jobs.uploads import Upload, Uploads

NAME = f"{0:08x}-{7:016x}.staged"
OTHER = f"{1:08x}-{8:016x}.staged"
DATA = b"0123456789" * 10


class Stages:
    """One job, whose driver counts until a test says otherwise."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.is_fenced = False

    def staging_of(self, name: str, epoch: int) -> Path:
        if self.is_fenced:
            raise JobFenced(job=name, epoch=epoch, newer=2)
        return self.folder


@pytest.fixture
def stages(tmp_path: Path) -> Stages:
    return Stages(tmp_path)


async def put(upload: Upload, start: int, end: int) -> None:
    data = DATA[start:end]
    await upload.take(start, data, xxh3_64_intdigest(data))


async def test_a_file_has_its_name_once_all_of_it_is_there(stages: Stages) -> None:
    uploads = Uploads(stages)
    upload = await uploads.begin("j", 1, NAME, len(DATA))
    await put(upload, 0, 60)
    assert not (stages.folder / NAME).exists()
    await put(upload, 60, 100)
    assert upload.is_whole
    assert (stages.folder / NAME).read_bytes() == DATA
    again = await uploads.begin("j", 1, NAME, len(DATA))
    assert again.is_whole, "a call whose answer was lost is repeated"


async def test_what_came_in_a_call_that_was_lost_is_not_brought_again(stages: Stages) -> None:
    uploads = Uploads(stages)
    lost = await uploads.begin("j", 1, NAME, len(DATA))
    await put(lost, 0, 30)
    newer = await uploads.begin("j", 1, NAME, len(DATA))
    assert newer.have == 30
    with pytest.raises(StagedFileRefused, match="another call"):
        await put(lost, 30, 40)
    uploads.end(lost)
    await put(newer, 30, 100)
    assert (stages.folder / NAME).read_bytes() == DATA


@pytest.mark.parametrize(
    ("offset", "data", "checksum"),
    [(1, DATA, None), (0, b"", None), (0, DATA + b"x", None), (0, DATA, 0)],
)
async def test_what_is_not_the_next_piece_as_it_was_sent_is_refused(
    stages: Stages, offset: int, data: bytes, checksum: int | None
) -> None:
    upload = await Uploads(stages).begin("j", 1, NAME, len(DATA))
    with pytest.raises(StagedFileRefused):
        await upload.take(offset, data, xxh3_64_intdigest(data) if checksum is None else checksum)
    await put(upload, 0, 100)
    assert (stages.folder / NAME).read_bytes() == DATA


@pytest.mark.parametrize("name", ["", "../x", "/etc/passwd", "x.staged", f"{NAME}.upload"])
async def test_a_name_that_no_staged_file_has_is_refused(stages: Stages, name: str) -> None:
    with pytest.raises(StagedFileRefused):
        await Uploads(stages).begin("j", 1, name, 1)
    assert not list(stages.folder.iterdir())


async def test_what_a_job_has_staged_is_bounded(stages: Stages) -> None:
    uploads = Uploads(stages, bytes_max=150)
    first = await uploads.begin("j", 1, NAME, len(DATA))
    with pytest.raises(StagedFileRefused, match="150 bytes"):
        await uploads.begin("j", 1, OTHER, 51)
    await put(first, 0, 100)
    uploads.end(first)
    with pytest.raises(StagedFileRefused, match="150 bytes"):
        await uploads.begin("j", 1, OTHER, 51)
    assert (await uploads.begin("j", 1, OTHER, 50)).have == 0


async def test_a_driver_that_lost_its_job_brings_nothing_more(stages: Stages) -> None:
    uploads = Uploads(stages)
    upload = await uploads.begin("j", 1, NAME, len(DATA))
    stages.is_fenced = True
    with pytest.raises(JobFenced):
        await put(upload, 0, 100)
    with pytest.raises(JobFenced):
        await uploads.begin("j", 1, OTHER, 1)
