import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dss_core.errors import IllegalConfig
from dssd.__main__ import main
from dssd.service.install import UnitRequest, install, text_of
from dssd.service.unit import NAME
from support.prerequisites import SYSTEMD, leave_out


def wanted(*, of_system: bool = False, data_dir: Path | None = None) -> UnitRequest:
    return UnitRequest(of_system=of_system, run_as="root", data_dir=data_dir, config=None)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where units of a user are: in here."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path


def test_a_unit_can_run_jobs_on_a_jvm() -> None:
    for of_system in (False, True):
        text = text_of(wanted(of_system=of_system))
        assert "MemoryDenyWriteExecute" not in text
        assert "\nKillMode=mixed\n" in text
        assert "\nType=notify\n" in text


def test_a_daemon_whose_disk_failed_is_not_started_again() -> None:
    assert "RestartPreventExitStatus=2 74 78\n" in text_of(wanted(of_system=True))


def test_a_unit_runs_this_daemon_on_its_directory(tmp_path: Path) -> None:
    text = text_of(wanted(data_dir=tmp_path / "my data 100%"))
    assert f'ExecStart={sys.executable} -m dssd serve --data-dir "{tmp_path}/my data 100%%"' in text


def test_a_unit_of_the_machine_keeps_its_records_in_var_lib() -> None:
    text = text_of(wanted(of_system=True))
    assert "--data-dir /var/lib/dssd\n" in text
    assert "\nStateDirectory=dssd\n" in text
    assert "\nUser=root\n" in text
    assert "\nReadWritePaths=/srv/dss\n" in text_of(
        wanted(of_system=True, data_dir=Path("/srv/dss"))
    )


def test_what_is_printed_is_what_is_written(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["service", "install", "--user", "--print"]) == 0
    printed = capsys.readouterr().out
    path = home / "systemd/user" / NAME
    assert not path.exists()
    assert main(["service", "install", "--user"]) == 0
    assert path.read_text() == printed
    said = capsys.readouterr().out
    assert f"{path}\nsystemctl --user daemon-reload\n" in said
    assert list(path.parent.iterdir()) == [path]


def test_a_unit_that_somebody_changed_is_not_replaced_unasked(home: Path) -> None:
    path = home / "systemd/user" / NAME
    install(wanted(), force=False)
    install(wanted(), force=False)
    path.write_text("mine")
    with pytest.raises(IllegalConfig, match="--force"):
        install(wanted(), force=False)
    assert path.read_text() == "mine"
    install(wanted(), force=True)
    assert path.read_text() == text_of(wanted())


def test_one_of_user_and_system_is_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    for words in ([], ["--user", "--system"]):
        assert main(["service", "install", *words]) == 2
        assert "--user and --system" in capsys.readouterr().err


def test_a_user_that_is_missing_is_told_of_before_anything_is_written(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["service", "install", "--system", "--run-as", "nobody-like-this"]) == 78
    assert "useradd --system nobody-like-this" in capsys.readouterr().err


@pytest.mark.parametrize("of_system", [False, True])
def test_systemd_itself_takes_the_unit(tmp_path: Path, of_system: bool) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        leave_out(SYSTEMD, "there is no systemd-analyze")
        return
    path = tmp_path / NAME
    path.write_text(text_of(wanted(of_system=of_system, data_dir=tmp_path / "my data")))
    done = subprocess.run(
        [analyze, "verify", "--man=no", path], capture_output=True, text=True, timeout=60
    )
    about = [line for line in done.stderr.splitlines() if NAME in line]
    assert about == []
