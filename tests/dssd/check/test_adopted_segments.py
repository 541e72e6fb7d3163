"""``dssd check`` on segments whose frames came all at once."""

from pathlib import Path

import pytest

from dss_core.build import build_frame
from dss_core.columns import Columns
from dss_core.errors import ExitCode
from dss_core.producer_ids import NO_PRODUCER
from dssd.__main__ import main
from dssd.data_directory import DataDirectory
from dssd.log.port import Publication
from dssd.store.sqlite import SqliteStore
from support.log_in_process import opened_shelf

Capture = pytest.CaptureFixture[str]


@pytest.fixture
async def directory(tmp_path: Path) -> Path:
    """Frames of producers, adopted ones, and frames of producers behind them."""
    with DataDirectory(tmp_path / "data") as opened:
        store = await SqliteStore.open(opened.store_path)
        async with opened_shelf(opened.log_path, store) as shelf:
            topic = await shelf.topic("orders", 2)
            await shelf.store(topic, b"before")
            columns = Columns([b"1", b"2"], None, "orders", None, 1)
            frames = [
                build_frame(columns, partition=number, producer_id=NO_PRODUCER, sequence=0)
                for number in (0, 1)
            ]
            await shelf.log.adopt(
                topic.producing.storage_topic_id,
                lambda: [frames],
                topic_epoch=topic.topic_epoch,
                publish=lambda _: Publication(),
            )
            await shelf.store(topic, b"behind")
        await store.close()
    return tmp_path / "data"


def test_adopted_segments_are_whole(directory: Path, capsys: Capture) -> None:
    assert main(["check", "--data-dir", str(directory), "--deep"]) == ExitCode.OK
    said = capsys.readouterr()
    assert "3 segments, 6 records: all is whole" in said.err
    assert said.out.count("\n") <= 1, "at most the last bytes of the active file are noted"


def test_one_that_was_not_published_is_noted_and_one_that_is_gone_is_missed(
    directory: Path, capsys: Capture
) -> None:
    log = directory / "log"
    adopted = sorted(log.glob("*.seg"))[1]
    for suffix in ("seg", "adopting"):
        (log / f"00000001-0000000000000001.{suffix}").touch()
    assert main(["check", "--data-dir", str(directory)]) == ExitCode.OK
    assert "it was not published: the next start deletes it" in capsys.readouterr().out

    adopted.unlink()
    assert main(["check", "--data-dir", str(directory)]) == ExitCode.FAILED
    assert f"{adopted.name}: the file is missing" in capsys.readouterr().out


def test_a_file_that_the_store_cannot_know_is_damage(directory: Path, capsys: Capture) -> None:
    newer = directory / "log" / "00000001-00000000000000ff.seg"
    newer.write_bytes(b"of a newer store")
    assert main(["check", "--data-dir", str(directory)]) == ExitCode.FAILED
    assert f"{newer.name}: the store is older than it" in capsys.readouterr().out
