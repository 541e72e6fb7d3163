"""Every example of ``docs/cron.md`` works: commands, crontab, units of systemd, tables."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dssd.schedules.cron import fire_times
from support.dssctl_call import Daemon
from support.forked_dssctl import forked_dssctl
from support.page_blocks import blocks
from support.prerequisites import SYSTEMD, leave_out

PAGE = (Path(__file__).resolve().parents[2] / "docs/cron.md").read_text()
LINE_S_MAX = 60.0


@pytest.fixture
def bin_of(tmp_path: Path) -> Iterator[Path]:
    """A directory with a program ``dssctl``."""
    folder = tmp_path / "bin"
    folder.mkdir()
    with forked_dssctl(folder):
        yield folder


def test_the_commands_of_the_page_work_one_after_the_other(daemon: Daemon) -> None:
    [block] = blocks("docs/cron.md", "console")
    for each in block.commands():
        words = shlex.split(each.command)
        assert words[0] == "dssctl"
        done = daemon.dssctl(*words[1:])
        assert done.returncode == 0, f"{each}: {done.stderr.decode()}"
    assert daemon.dssctl("schedules", "ls", "-o", "name").stdout == b"lag\nlake\nnightly-scrub\n"


def crontab() -> tuple[dict[str, str], list[list[str]]]:
    """Its settings, and its jobs: five fields and a command."""
    [block] = blocks("docs/cron.md", "crontab")
    lines = [line for line in block.text.splitlines() if line and not line.startswith("#")]
    settings = dict(line.split("=", 1) for line in lines if re.match(r"[A-Z_]+=", line))
    return settings, [line.split(None, 5) for line in lines if not re.match(r"[A-Z_]+=", line)]


@pytest.mark.parametrize("job", crontab()[1], ids=lambda job: job[-1].split()[3])
def test_a_line_of_the_crontab_runs_as_cron_would_run_it(
    daemon: Daemon, tmp_path: Path, bin_of: Path, job: list[str]
) -> None:
    settings, _ = crontab()
    *fields, command = job
    fire_times(" ".join(fields), "UTC")
    assert re.search(r"(?<!\\)%", command) is None
    cron = {**settings, "HOME": str(tmp_path), "LOGNAME": "root"}
    cron["PYTHONPATH"] = os.pathsep.join(sys.path)
    cron["PATH"] = f"{bin_of}:{cron['PATH']}"
    cron["DSSCTL_ENDPOINT"] = daemon.endpoint
    here = command.replace("/run/lock", str(tmp_path)).replace("/var/log", str(tmp_path))
    done = subprocess.run(
        [settings["SHELL"], "-c", here],
        env=cron,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=LINE_S_MAX,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    kept = [path.read_text() for path in tmp_path.glob("*.jsonl")]
    assert [len(text.splitlines()) for text in kept] == [1] * (">>" in command)


def test_the_units_are_ones_that_systemd_takes(tmp_path: Path, bin_of: Path) -> None:
    verify = shutil.which("systemd-analyze")
    if verify is None:
        leave_out(SYSTEMD, "there is no systemd-analyze on PATH")
    assert verify is not None
    service, timer = [each.text for each in blocks("docs/cron.md", "ini")]
    here = service.replace("/usr/local/bin", str(bin_of)).replace("User=dssd\n", "")
    (tmp_path / "dss-scrub.service").write_text(here)
    (tmp_path / "dss-scrub.timer").write_text(timer)
    done = subprocess.run(
        [
            verify,
            "verify",
            "--man=no",
            *(str(tmp_path / f"dss-scrub.{of}") for of in ("service", "timer")),
        ],
        env={**os.environ, "SYSTEMD_UNIT_PATH": f"{tmp_path}:"},
        capture_output=True,
        text=True,
        timeout=LINE_S_MAX,
        check=False,
    )
    about_ours = [line for line in done.stderr.splitlines() if "dss-scrub" in line]
    assert (about_ours, done.returncode) == ([], 0), done.stderr
    [when] = re.findall(r"OnCalendar=(.+)", timer)
    subprocess.run([verify, "calendar", when], capture_output=True, check=True)


def test_the_page_has_every_task_with_all_that_it_takes(daemon: Daemon) -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \| [^|]+ \| ([^|]*)\|$", PAGE, re.MULTILINE)
    told = {name: re.findall(r"`([a-z-]+)`", takes) for name, takes in rows}
    listed = daemon.dssctl("tasks", "ls", "-o", "name").stdout.decode().split()
    assert set(told) == set(listed)
    for name, arguments in told.items():
        described = daemon.dssctl("tasks", "describe", name).stdout.decode()
        _, _, table = described.partition("ARGUMENTS\nARGUMENT")
        found = [line.split()[0] for line in table.splitlines()[1:]]
        assert found == arguments, name
