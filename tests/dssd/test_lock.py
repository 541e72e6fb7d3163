import subprocess
import sys
from pathlib import Path

import pytest

from dss_core.errors import DataDirectoryLocked
from dssd.lock import DirectoryLock


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
