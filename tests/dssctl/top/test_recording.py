"""Recordings: what is written comes back, and nothing else is taken for one."""

import json
import stat
from pathlib import Path

import pytest

from dss_core.errors import DocumentUnreadable, InputUnreadable, OutputUnwritable
from dssctl.top.feed import recording
from dssctl.top.feed.recording import Recorder, recorded
from dssctl.top.feed.replay import Replayed
from dssctl.top.model.picture import Lost, Picture, step
from support.dashboard_items import busy, stuck


def written(path: Path, *items: object) -> Path:
    ms = iter(range(0, 1_000_000, 100))
    recorder = Recorder(str(path), lambda: next(ms))
    for item in items:
        recorder.write(item)  # type: ignore[arg-type]
    recorder.close()
    assert recorder.failure == ""
    return path


def test_items_come_back_equal_and_in_order(tmp_path: Path) -> None:
    items = [*busy(5), stuck(), Lost(7, "gone")]
    path = written(tmp_path / "r", *items)
    assert [told for _, told in recorded(str(path))] == items
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_that_is_there_is_not_written_over(tmp_path: Path) -> None:
    path = written(tmp_path / "r")
    with pytest.raises(OutputUnwritable):
        Recorder(str(path))


def test_a_line_that_was_being_written_is_where_a_recording_ends(tmp_path: Path) -> None:
    path = written(tmp_path / "r", *busy(3))
    whole = len(list(recorded(str(path))))
    path.write_bytes(path.read_bytes()[:-20])
    assert len(list(recorded(str(path)))) == whole - 1


@pytest.mark.parametrize(
    "line",
    [
        "nonsense",
        "{}",
        '{"at_ms": 1, "told": 5}',
        '{"at_ms": 1, "told": {"_": "Popen", "args": "ls"}}',
        '{"at_ms": "x", "told": {"_": "Ticked", "at_ms": 1}}',
        '{"at_ms": 1, "told": {"_": "Ticked", "until": 1}}',
        '{"at_ms": 1, "told": {"_": "Rates", "minute": 1, "five_minutes": 1}}',
        "[]",
    ],
)
def test_a_line_that_is_no_item_is_refused_with_its_reason(line: str, tmp_path: Path) -> None:
    path = written(tmp_path / "r")
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(DocumentUnreadable) as refused:
        list(recorded(str(path)))
    assert str(path) in refused.value.message


def test_what_is_no_recording_is_refused_before_anything_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "r"
    path.write_text(json.dumps({"dssctl-top": 2}) + "\n")
    with pytest.raises(DocumentUnreadable):
        Replayed(str(path), lambda: None)
    with pytest.raises(InputUnreadable):
        Replayed(str(tmp_path / "nothing"), lambda: None)


def test_a_recording_that_is_full_ends_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "RECORDING_BYTES_MAX", 2_000)
    recorder = Recorder(str(tmp_path / "r"), lambda: 0)
    for item in busy(5):
        recorder.write(item)
    recorder.close()
    assert "full" in recorder.failure
    assert (tmp_path / "r").stat().st_size <= 2_000


def test_a_jump_back_shows_what_was_shown_then(tmp_path: Path) -> None:
    path = written(tmp_path / "r", *busy(200))
    pictures = [Picture()]

    def tell(told: object) -> None:
        pictures.append(step(pictures[-1], told))  # type: ignore[arg-type]

    replay = Replayed(str(path), lambda: pictures.append(Picture()))
    replay.play(tell, 15_000)
    then = pictures[-1]
    replay.play(tell, 10_000)
    assert pictures[-1] != then
    replay.jump(tell, -1)
    assert pictures[-1] == then
    replay.jump(tell, 1)
    assert pictures[-1].ticks > then.ticks


def test_a_recording_is_played_faster_within_bounds_and_says_where_it_is(tmp_path: Path) -> None:
    replay = Replayed(str(written(tmp_path / "r", *busy(3))), lambda: None)
    assert replay.where == "1970-01-01T00:00:00Z +0s"
    for _ in range(20):
        replay.hasten(2)
    assert replay.where.endswith("x64")
    replay.play(lambda _told: None, 10**6)
    assert replay.where.endswith("the end")
