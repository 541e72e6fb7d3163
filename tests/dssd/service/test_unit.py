import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dss_core.errors import ExitCode, IllegalConfig
from dssd.__main__ import main
from dssd.service import install as unit_files
from dssd.service.install import UnitRequest, install, text_of
from dssd.service.unit import NAME
from support.prerequisites import SYSTEMD, leave_out


def wanted(
    *,
    of_system: bool = False,
    data_dir: Path | None = None,
    config: Path | None = None,
    run_as: str = "root",
) -> UnitRequest:
    return UnitRequest(of_system=of_system, run_as=run_as, data_dir=data_dir, config=config)


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


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A daemon's file that says where it keeps its records and its backups."""
    path = tmp_path / "dssd.toml"
    path.write_text('data_dir = "/srv/dss"\n[backup]\ndirectory = "/my backups"\n')
    return path


def test_a_service_may_write_where_its_file_says_and_goes_by_what_that_says_later(
    file: Path,
) -> None:
    text = text_of(wanted(of_system=True, config=file))
    assert "\nReadWritePaths=/srv/dss\n" in text
    # A disk of backups that is not mounted keeps no daemon from starting.
    assert '\nReadWritePaths="-/my backups"\n' in text
    assert f"-m dssd serve --config {file}\n" in text
    file.write_text('data_dir = "/var/lib/dssd/data"')
    text = text_of(wanted(of_system=True, config=file))
    assert "\nStateDirectory=dssd\n" in text
    assert "ReadWritePaths" not in text


@pytest.mark.parametrize("said", ['data_dir = "data"', '[backup]\ndirectory = "~/backups"'])
def test_a_service_has_no_directory_to_begin_a_path_from(file: Path, said: str) -> None:
    file.write_text(said)
    with pytest.raises(IllegalConfig, match="no directory to begin from"):
        text_of(wanted(of_system=True, config=file))
    assert "ReadWritePaths" not in text_of(wanted(config=file))


def test_a_checkout_in_a_private_home_is_told_before_its_service_fails(
    file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    private = tmp_path / "home"
    (private / ".venv").mkdir(parents=True)
    private.chmod(0o700)
    python = private / ".venv" / "python"
    python.symlink_to("/bin/sh")
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.setattr(unit_files, "_SYSTEM_UNITS", tmp_path / "units")
    words = ["service", "install", "--system", "--run-as", "nobody"]
    assert main([*words, "--print"]) == 0
    assert f"on the way to {python}; " in capsys.readouterr().err
    assert main(words) == ExitCode.CONFIG
    assert "sudo pipx install --global PATH_OF_ITS_WHEEL" in capsys.readouterr().err
    assert not (tmp_path / "units").exists()
    assert main([*words, "--force"]) == 0


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
    config = tmp_path / "dssd.toml"
    config.write_text(f'[backup]\ndirectory = "{tmp_path}/my backups"\n')
    path.write_text(
        text_of(wanted(of_system=of_system, data_dir=tmp_path / "my data", config=config))
    )
    done = subprocess.run(
        [analyze, "verify", "--man=no", path], capture_output=True, text=True, timeout=60
    )
    about = [line for line in done.stderr.splitlines() if NAME in line]
    assert about == []
