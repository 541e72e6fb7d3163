"""What becomes of a daemon whose files are moved, removed or replaced while it has them open."""

import os
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from dss_core.errors import DataDirectoryReplaced, StoreUnguarded
from dssd.data_directory import LOG_NAME, STORE_NAME, DataDirectory
from dssd.events.kinds import LOCK_REMOVED
from dssd.events.model import Event
from dssd.lock import LOCK_NAME
from dssd.ownership.directory_guard import DirectoryGuard
from dssd.store.sqlite import SqliteStore

WAL_NAME = f"{STORE_NAME}-wal"


@dataclass(frozen=True, slots=True)
class Opened:
    path: Path
    store: SqliteStore
    watch: DirectoryGuard
    failed: list[BaseException]
    """What ends the process at once."""


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[Opened]:
    failed: list[BaseException] = []
    path = tmp_path / "data"
    async with AsyncExitStack() as stack:
        directory = stack.enter_context(DataDirectory(path))
        watch = stack.enter_context(DirectoryGuard(directory, failed.append))
        store = await SqliteStore.open(directory.store_path)
        stack.push_async_callback(store.close)
        watch.begin()
        yield Opened(path, store, watch, failed)


def moved(path: Path) -> None:
    path.rename(path.with_name(f"{path.name}.moved"))


def removed(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def replaced(path: Path) -> None:
    """By a copy, as a backup that is put back."""
    copy = path.with_name(f"{path.name}.copy")
    shutil.copytree(path, copy) if path.is_dir() else shutil.copy(path, copy)
    removed(path)
    copy.rename(path)


def unlocked(path: Path) -> None:
    """As a programmer's error in this process would."""
    os.close(os.open(path, os.O_RDONLY))


async def test_what_nobody_touches_is_left_in_peace(opened: Opened) -> None:
    await opened.store.next_id()
    await opened.store.write_back()
    opened.watch.look()


@pytest.mark.parametrize("change", [moved, removed, replaced])
@pytest.mark.parametrize("name", ["", STORE_NAME, LOG_NAME])
async def test_files_that_are_anothers_end_the_daemon_at_once(
    opened: Opened, name: str, change: Callable[[Path], None]
) -> None:
    change(opened.path / name)
    with pytest.raises(DataDirectoryReplaced) as found:
        opened.watch.look()
    assert opened.failed == [found.value]
    assert found.value.fields["path"] == str(opened.path / name)


async def test_a_directory_behind_another_name_for_it_is_the_same(opened: Opened) -> None:
    elsewhere = opened.path.with_name("elsewhere")
    opened.path.rename(elsewhere)
    opened.path.symlink_to(elsewhere)
    opened.watch.look()


@pytest.mark.parametrize("change", [removed, replaced])
async def test_a_lock_file_that_is_gone_is_made_anew_and_told(
    opened: Opened, change: Callable[[Path], None]
) -> None:
    told: list[Event] = []
    change(opened.path / LOCK_NAME)
    opened.watch.look(told.append)
    opened.watch.look(told.append)
    assert [event.kind for event in told] == [LOCK_REMOVED]
    assert (opened.path / LOCK_NAME).exists()


@pytest.mark.parametrize("change", [removed, replaced])
async def test_a_log_of_the_store_that_is_gone_is_written_back_by_an_orderly_stop(
    opened: Opened, change: Callable[[Path], None]
) -> None:
    given = await opened.store.next_id()
    change(opened.path / WAL_NAME)
    with pytest.raises(StoreUnguarded, match=WAL_NAME):
        opened.watch.look()
    assert not opened.failed
    await opened.store.close()
    again = await SqliteStore.open(opened.path / STORE_NAME)
    assert await again.last_id() == given
    await again.close()


async def test_a_store_that_is_not_locked_any_more_ends_the_daemon_at_once(opened: Opened) -> None:
    unlocked(opened.path / STORE_NAME)
    with pytest.raises(StoreUnguarded, match="its lock is gone") as found:
        opened.watch.look()
    assert opened.failed == [found.value]


async def test_a_log_that_another_process_took_over_is_not_written_back(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    removed(opened.path / WAL_NAME)
    monkeypatch.setattr("dssd.ownership.directory_guard.lock_holder", lambda _: os.getpid() + 1)
    with pytest.raises(StoreUnguarded) as found:
        opened.watch.look()
    assert opened.failed == [found.value]


async def test_a_disk_that_cannot_be_asked_is_asked_again(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(_: int) -> int:
        raise OSError

    with monkeypatch.context() as broken:
        broken.setattr("dssd.ownership.directory_guard.lock_holder", failing)
        opened.watch.look()
    opened.watch.look()
