"""Whatever else wants a processor is served before a driver, and before all that it starts."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dss_bulk import priority
from dss_bulk.priority import DRIVER_NICENESS

GROUP = Path("/proc/self/autogroup")
HELPED = """
import importlib, os, subprocess, sys
sys.argv[1:] = ["--help"]
try:
    importlib.import_module({module!r}).main()
except SystemExit:
    child = [sys.executable, "-c", "import os; print(os.nice(0))"]
    print("niceness", os.nice(0), subprocess.check_output(child, text=True))
"""
GIVES_WAY = """
import os
from dss_bulk.priority import give_way
os.setpriority(os.PRIO_PROCESS, 0, {before})
give_way()
print(os.nice(0))
"""
GROUP_GIVES_WAY = """
from dss_bulk.priority import give_way
give_way()
print(open("/proc/self/autogroup").read())
"""


def said(program: str, *, own_session: bool = False) -> list[str]:
    """The words that a process says."""
    command = [sys.executable, "-c", program]
    return subprocess.check_output(command, text=True, start_new_session=own_session).split()


@pytest.mark.parametrize(
    "module", ["dss_bulk.__main__", "dss_bulk.scheduled_export", "dss_spark.__main__"]
)
def test_a_driver_and_what_it_starts_give_way(module: str) -> None:
    niceness = str(max(DRIVER_NICENESS, os.nice(0)))
    assert said(HELPED.format(module=module))[-3:] == ["niceness", niceness, niceness]


def test_a_driver_that_gives_way_already_stays_as_it_is() -> None:
    lower = max(DRIVER_NICENESS, os.nice(0)) + 1
    assert said(GIVES_WAY.format(before=lower)) == [str(lower)]


@pytest.mark.skipif(not GROUP.exists(), reason="proof left out: this kernel weighs no sessions")
def test_a_session_gives_way_where_it_is_the_driver_s_own() -> None:
    assert said(GROUP_GIVES_WAY, own_session=True)[-1] == str(DRIVER_NICENESS)


@pytest.mark.skipif(not GROUP.exists(), reason="proof left out: this kernel weighs no sessions")
def test_a_session_that_the_driver_shares_keeps_its_priority() -> None:
    """The file is empty where the session has no group of its own, as in some containers."""
    before = GROUP.read_text().split()
    assert said(GROUP_GIVES_WAY) == before
    assert GROUP.read_text().split() == before


@pytest.mark.parametrize("text", ["", "\n"])
def test_a_session_without_a_group_is_left_alone(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = tmp_path / "autogroup"
    session.write_text(text)
    monkeypatch.setattr(priority, "_SESSION", session)
    priority._session_gives_way()
    assert session.read_text() == text
