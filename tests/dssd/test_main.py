"""What the command makes of how a daemon ends."""

import subprocess
import sys
from pathlib import Path

import pytest

from dss_core.errors import DiskFailed, ExitCode, IllegalConfig
from dssd import process
from dssd.__main__ import main
from dssd.config import Config
from dssd.exception_groups import EXIT_SOFTWARE
from dssd.version import version


def ends_with(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> int:
    def serve(config: Config, *, temporary: Path | None) -> None:
        raise error

    monkeypatch.setattr(process, "serve", serve)
    return main(["serve", "--data-dir", "/nowhere", "--listen", "127.0.0.1:0"])


def test_a_condition_is_explained_and_gives_its_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error = DiskFailed(reason="EIO")
    assert ends_with(monkeypatch, error) == ExitCode.IO_ERROR
    assert capsys.readouterr().err == f"dssd: {error.message} [DSS5007]\n  {error.hint_text}\n"


def test_a_condition_that_ended_a_task_group_is_found_in_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    nested = ExceptionGroup("outer", [ExceptionGroup("inner", [DiskFailed(reason="EIO")])])
    assert ends_with(monkeypatch, nested) == ExitCode.IO_ERROR
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "error",
    [
        ZeroDivisionError("seven"),
        AssertionError("seven"),
        ExceptionGroup("group", [DiskFailed(reason="EIO"), ZeroDivisionError("seven")]),
    ],
)
def test_an_unexpected_error_is_shown_with_its_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: BaseException
) -> None:
    assert ends_with(monkeypatch, error) == EXIT_SOFTWARE == 70
    shown = capsys.readouterr().err
    assert "Traceback" in shown
    assert "seven" in shown


def test_a_wrong_address_never_reaches_the_daemon(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(process, "serve", pytest.fail)
    assert main(["serve", "--listen", "1.2.3.4:5"]) == ExitCode.CONFIG
    assert IllegalConfig.code in capsys.readouterr().err


def test_version_prints_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version"]) == 0
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"dssd {version()}\n" * 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["serve", "--nonsense"], "No such option"),
        (["serve", "--dev", "--data-dir", "/d"], "--dev and --data-dir exclude each other"),
        (["check", "-o", "xml"], "'xml'"),
        (["nonsense"], "No such command"),
        (["--data-dir", "/d d"], "dssd serve --data-dir '/d d'"),
        ([], "Usage: dssd"),
    ],
)
def test_a_command_line_that_is_not_understood_is_a_condition(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == ExitCode.USAGE
    shown = capsys.readouterr()
    assert said in shown.err
    assert shown.out == ""
    assert "Traceback" not in shown.err


@pytest.mark.parametrize("words", [["--help"], ["serve", "-h"], ["check", "--help"]])
def test_help_goes_to_standard_output(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 0
    assert capsys.readouterr().out.startswith("Usage: dssd")


def test_a_daemon_looks_for_dead_cycles_once_it_is_loaded_and_loads_no_pandas() -> None:
    program = (
        "import gc, sys; from dssd.__main__ import main; looks = [];"
        "gc.callbacks.append(lambda phase, info: looks.append(phase));"
        "main(['serve', '--config', '/nowhere']);"
        "print(len(looks), gc.isenabled(), gc.get_freeze_count());"
        # A daemon makes its first array for the first frame of columns that comes.
        "sys.modules['pyarrow'].scalar(1); print('pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    looks, enabled, passed_over, pandas = done.stdout.split()
    assert int(looks) < 20
    assert int(passed_over) > 50_000, "what is loaded is not looked through"
    assert enabled == b"True"
    assert pandas == b"False"
