"""What a daemon leaves of how it ended, and what the next one makes of it."""

import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from errno import ENOSPC
from pathlib import Path

import pytest

from dss_core.errors import DataDirectoryReplaced, DiskFailed
from dssd.clock import Clock
from dssd.events.model import Event
from dssd.events.teller import Unheard
from dssd.life import LIFE_NAME, End, How, Life, events_of_start


class Noon(Clock):
    __slots__ = ()

    def wall_ms(self) -> int:
        return 1_800_000_000_000


async def lived(directory: Path, ends: BaseException | None = None) -> None:
    """Serve, and end with an error or as told."""
    with Life(directory, Noon()) as life:
        await life.begin(Unheard(), "1")
        if ends:
            raise ends


async def killed(directory: Path) -> None:
    await Life(directory, Noon()).begin(Unheard(), "1")


def before(directory: Path) -> End:
    with Life(directory, Noon()) as life:
        return life.before


async def test_what_stopped_was_stopped_and_what_says_nothing_was_killed(tmp_path: Path) -> None:
    assert before(tmp_path).how is How.UNKNOWN
    await killed(tmp_path)
    assert before(tmp_path).how is How.KILLED
    await lived(tmp_path)
    assert before(tmp_path) == End(How.STOPPED, Noon().wall_ms())


async def test_a_kill_before_another_boot_of_the_system_is_a_loss_of_power(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await killed(tmp_path)
    monkeypatch.setattr("dssd.life._boot", lambda: "another")
    assert before(tmp_path).how is How.POWER_LOST


async def test_a_crash_says_when_and_with_what(tmp_path: Path) -> None:
    failed = DiskFailed(reason="EIO")
    with pytest.raises(DiskFailed):
        await lived(tmp_path, failed)
    end = before(tmp_path)
    assert (end.how, end.at_ms) == (How.CRASHED, Noon().wall_ms())
    assert end.reason == f"exit 74, DSS5007: {failed.message.rstrip('.')}"


async def test_of_several_errors_the_one_that_is_no_condition_is_named(tmp_path: Path) -> None:
    with pytest.raises(KeyError) as blunder:
        raise KeyError("x")
    errors = BaseExceptionGroup("all", [DiskFailed(reason="EIO"), blunder.value])
    with pytest.raises(BaseExceptionGroup):
        await lived(tmp_path, errors)
    assert before(tmp_path).reason.startswith("exit 70, KeyError: 'x' (test_life.py:")


async def test_a_start_that_fails_leaves_what_is_known_of_the_daemon_before(
    tmp_path: Path,
) -> None:
    with pytest.raises(DiskFailed):
        await lived(tmp_path, DiskFailed(reason="EIO"))
    with pytest.raises(KeyError), Life(tmp_path, Noon()):
        raise KeyError("x")
    assert "DSS5007" in before(tmp_path).reason


def full(*_: object) -> None:
    raise OSError(ENOSPC, "full")


@pytest.mark.parametrize("ends", [killed, lived])
async def test_a_file_that_cannot_be_written_or_read_says_nothing_false(
    ends: Callable[[Path], Awaitable[None]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await lived(tmp_path)
    monkeypatch.setattr(os, "fsync", full)
    await ends(tmp_path)
    assert before(tmp_path).how is How.UNKNOWN
    (tmp_path / LIFE_NAME).write_text("{}")
    assert before(tmp_path).how is How.UNKNOWN


@pytest.mark.parametrize("how", [How.STOPPED, How.CRASHED])
async def test_on_a_full_disk_an_end_is_told_in_the_room_of_the_file(
    how: How, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with suppress(KeyError), Life(tmp_path, Noon()) as life:
        await life.begin(Unheard(), "1")
        monkeypatch.setattr(Life, "_replace", full)
        if how is How.CRASHED:
            raise KeyError("x" * 200)
    assert before(tmp_path).how is how


@pytest.mark.parametrize(
    "text",
    [
        '{"how":"crashed","at_ms":1e400,"reason":"","boot":""}',
        "[" * 4_000,
        "[]",
        "\0",
        "",
    ],
)
async def test_a_file_with_anything_in_it_says_nothing(text: str, tmp_path: Path) -> None:
    (tmp_path / LIFE_NAME).write_text(text)
    assert before(tmp_path).how is How.UNKNOWN


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir, lambda path: path.symlink_to("/dev/zero")])
async def test_what_is_no_file_is_not_read(make: Callable[[Path], None], tmp_path: Path) -> None:
    make(tmp_path / LIFE_NAME)
    assert before(tmp_path).how is How.UNKNOWN


async def test_what_was_before_is_told_before_the_file_forgets_it(tmp_path: Path) -> None:
    class Looking(Unheard):
        async def tell(self, event: Event) -> int:
            assert before(tmp_path).how is How.STOPPED
            told.append(event.kind.code)
            return 1

    told: list[str] = []
    await lived(tmp_path)
    with Life(tmp_path, Noon()) as life:
        await life.begin(Looking(), "1")
    assert told == ["daemon.started"]


@pytest.mark.parametrize(
    ("end", "codes"),
    [
        (End(How.UNKNOWN), ["daemon.started"]),
        (End(How.STOPPED, 7), ["daemon.started"]),
        (End(How.KILLED), ["daemon.killed", "daemon.started"]),
        (End(How.POWER_LOST), ["daemon.killed", "daemon.started"]),
        (End(How.CRASHED, 7, "exit 70, KeyError: 'x'"), ["daemon.crashed", "daemon.started"]),
    ],
)
def test_a_start_tells_of_an_end_that_nobody_asked_for(end: End, codes: list[str]) -> None:
    events = events_of_start(end, "1")
    assert [each.kind.code for each in events] == codes
    assert all(each.fields["how"] == end.how for each in events)


async def test_nothing_is_written_to_a_directory_that_is_anothers_by_now(tmp_path: Path) -> None:
    with pytest.raises(DataDirectoryReplaced):
        await lived(tmp_path, DataDirectoryReplaced(path=tmp_path))
    assert before(tmp_path).how is How.KILLED, "as it was before that"
