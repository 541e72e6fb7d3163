"""`dssctl completion`: prints a script, or puts it where the shell looks."""

from collections.abc import Callable
from pathlib import Path

import pytest

from support.dssctl_call import Completed

Run = Callable[..., Completed]

SCRIPTS = Path(__file__).resolve().parents[3] / "completions"
PLACES = {
    "bash": ("dssctl", "data/bash-completion/completions/dssctl"),
    "zsh": ("_dssctl", "data/zsh/site-functions/_dssctl"),
    "fish": ("dssctl.fish", "config/fish/completions/dssctl.fish"),
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("BASH_COMPLETION_USER_DIR", raising=False)
    return tmp_path


@pytest.mark.parametrize("shell", PLACES)
def test_a_script_is_printed_and_nothing_else(shell: str, dssctl: Run) -> None:
    done = dssctl("completion", shell)
    assert done.returncode == 0
    assert done.stdout == (SCRIPTS / PLACES[shell][0]).read_bytes()
    assert done.stderr == b""


@pytest.mark.parametrize("shell", PLACES)
def test_a_script_is_put_where_the_shell_looks(shell: str, dssctl: Run, home: Path) -> None:
    name, place = PLACES[shell]
    for _ in range(2):
        done = dssctl("completion", shell, "--install")
        assert done.returncode == 0
        assert done.stdout == b""
        assert str(home / place) in done.stderr.decode()
    assert (home / place).read_bytes() == (SCRIPTS / name).read_bytes()
    assert [path.name for path in (home / place).parent.iterdir()] == [name]


def test_a_folder_that_cannot_be_written_is_an_error_with_its_path(
    dssctl: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "/dev/null")
    done = dssctl("completion", "bash", "--install")
    assert done.returncode == 74
    assert b"/dev/null/bash-completion/completions/dssctl cannot be written" in done.stderr


def test_an_unknown_shell_is_refused_with_those_that_are_known(dssctl: Run) -> None:
    done = dssctl("completion", "tcsh")
    assert done.returncode == 2
    assert b"'bash', 'zsh', 'fish'" in done.stderr
