import errno
import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dss_core.errors import DataDirectoryLocked, DataDirectoryReplaced
from dssd.lock import LOCK_NAME, DirectoryLock


def test_a_second_lock_on_a_directory_is_refused(tmp_path: Path) -> None:
    with DirectoryLock(tmp_path), pytest.raises(DataDirectoryLocked) as refused:
        DirectoryLock(tmp_path)
    assert refused.value.fields["path"] == str(tmp_path)


def test_a_released_lock_can_be_taken_again(tmp_path: Path) -> None:
    DirectoryLock(tmp_path).release()
    DirectoryLock(tmp_path).release()


def test_the_lock_of_a_dead_process_is_free(tmp_path: Path) -> None:
    taken_and_died = (
        "import os, pathlib, sys; from dssd.lock import DirectoryLock;"
        "DirectoryLock(pathlib.Path(sys.argv[1])); os._exit(9)"
    )
    died = subprocess.run([sys.executable, "-c", taken_and_died, str(tmp_path)], check=False)
    assert died.returncode == 9
    DirectoryLock(tmp_path).release()


def test_a_child_does_not_inherit_the_lock(tmp_path: Path) -> None:
    lock = DirectoryLock(tmp_path)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        lock.release()
        DirectoryLock(tmp_path).release()
        child.communicate(b"\n")


def test_whoever_removes_the_lock_file_lets_nobody_in(tmp_path: Path) -> None:
    with DirectoryLock(tmp_path):
        (tmp_path / LOCK_NAME).unlink()
        with pytest.raises(DataDirectoryLocked):
            DirectoryLock(tmp_path)
        assert not list(tmp_path.iterdir())


def test_a_daemon_that_knows_the_lock_file_only_keeps_others_out(tmp_path: Path) -> None:
    with (tmp_path / LOCK_NAME).open("w") as older:
        fcntl.flock(older, fcntl.LOCK_EX)
        with pytest.raises(DataDirectoryLocked):
            DirectoryLock(tmp_path)
    DirectoryLock(tmp_path).release()


def test_a_lock_file_that_was_removed_is_made_anew_and_held(tmp_path: Path) -> None:
    with DirectoryLock(tmp_path) as lock:
        assert not lock.restore()
        (tmp_path / LOCK_NAME).unlink()
        assert lock.restore()
        assert not lock.restore()
        with (tmp_path / LOCK_NAME).open("w") as older, pytest.raises(BlockingIOError):
            fcntl.flock(older, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_lock_file_that_another_process_made_is_left_to_it(tmp_path: Path) -> None:
    with DirectoryLock(tmp_path) as lock:
        (tmp_path / LOCK_NAME).unlink()
        with (tmp_path / LOCK_NAME).open("w") as older:
            fcntl.flock(older, fcntl.LOCK_EX)
            with pytest.raises(DataDirectoryLocked):
                lock.restore()
        assert lock.restore()


def test_a_directory_that_was_moved_is_not_in_its_place(tmp_path: Path) -> None:
    path, elsewhere = tmp_path / "data", tmp_path / "elsewhere"
    path.mkdir()
    with DirectoryLock(path) as lock:
        assert lock.is_in_place()
        path.rename(elsewhere)
        assert not lock.is_in_place()
        path.mkdir()
        assert not lock.is_in_place()
        with pytest.raises(DataDirectoryLocked):
            DirectoryLock(elsewhere)


def test_a_lock_file_that_is_removed_as_it_is_taken_is_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def removed_at_once(descriptor: int, _: int) -> None:
        (tmp_path / LOCK_NAME).unlink(missing_ok=True)

    monkeypatch.setattr(fcntl, "flock", removed_at_once)
    with pytest.raises(DataDirectoryReplaced):
        DirectoryLock(tmp_path)


def test_where_no_directory_can_be_locked_the_file_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flock = fcntl.flock

    def of_files_only(descriptor: int, how: int) -> None:
        if os.path.samestat(os.fstat(descriptor), tmp_path.stat()):
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        flock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", of_files_only)
    with DirectoryLock(tmp_path), pytest.raises(DataDirectoryLocked):
        DirectoryLock(tmp_path)
