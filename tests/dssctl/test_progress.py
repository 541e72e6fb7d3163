"""How far long work is, where there is no terminal."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from dssctl import progress
from dssctl.settings import Format, Settings

Told = Callable[[int, int], None]


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The clock, which the test moves."""
    now = [100.0]
    monkeypatch.setattr("dssctl.progress.time.monotonic", lambda: now[0])
    return now


@pytest.mark.parametrize(
    ("begun", "said"),
    [
        (progress.settling, "note: move: 1 of 4 streams\nnote: move: 3 of 4 streams\n"),
        (progress.scanning, "note: move: 25 % (1 of 4)\nnote: move: 75 % (3 of 4)\n"),
        (progress.looking, "note: move: 25 % (1 of 4)\nnote: move: 75 % (3 of 4)\n"),
    ],
)
def test_work_that_takes_long_has_a_line_now_and_then(
    begun: Callable[[Settings, str], AbstractContextManager[Told]],
    said: str,
    seconds: list[float],
    capsys: pytest.CaptureFixture[str],
) -> None:
    with begun(Settings(), "move") as show:
        for passed, done in ((1, 0), (10, 1), (11, 1), (25, 1), (31, 3), (32, 4)):
            seconds[0] = 100.0 + passed
            show(done, 4)
    assert capsys.readouterr().err == said


def test_a_file_that_is_read_has_lines_too(
    seconds: list[float], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "f").write_bytes(b"x" * 2_000)
    with (
        (tmp_path / "f").open("rb") as file,
        progress.reading(Settings(), file.fileno(), "orders") as took,
    ):
        took(500)
        seconds[0] += 10
        took(1_000)
    assert capsys.readouterr().err == "note: orders: 75 % (1,500 of 2,000)\n"


@pytest.mark.parametrize("settings", [Settings(quiet=True), Settings(format=Format.JSON)])
def test_who_wants_quiet_and_who_reads_json_are_told_nothing(
    settings: Settings, seconds: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    with progress.lingering(settings, "waiting") as show:
        seconds[0] += 60
        show("it is idle")
    assert capsys.readouterr().err == ""
