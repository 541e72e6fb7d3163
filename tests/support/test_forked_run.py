"""Runs of pytest in two workers, each on a test file of its own."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from support import forked_run

MANY = 40
RUN_S_MAX = 60


def ran(folder: Path, text: str, *options: str) -> "subprocess.CompletedProcess[str]":
    """The result of a test file. Nothing of this run's own plugins reaches it."""
    (folder / "test_it.py").write_text(f"import os, signal, sys, time, pytest\n{text}")
    command = (*("-p", "support.forked_run", "-p", "no:cacheprovider"), *options, "test_it.py")
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rA", "--tb=short", "--jobs=2", *command],
        cwd=folder,
        env=os.environ
        | {
            "PYTHONPATH": str(Path(forked_run.__file__).parents[1]),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        },
        capture_output=True,
        text=True,
        timeout=RUN_S_MAX,
        check=False,
    )


OF_EVERY_KIND = f"""
alone = pytest.mark.parametrize("n", range({MANY}))

@alone
def test_alone(n, tmp_path):
    print("said", n, "by", os.getpid(), "in", tmp_path)
    assert n != 7, "it is seven"
    if n == 8:
        pytest.skip("not this one")
    if n == 9:
        os.kill(os.getpid(), signal.SIGKILL)

@pytest.fixture(scope="module")
def made(pytestconfig):
    made = []
    yield made
    with pytestconfig.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        sys.stderr.write(f"at the end: {{made}}\\n")

@pytest.mark.together
@pytest.mark.parametrize("n", range(9))
def test_together(made, n, capsys):
    made.append(n)
    with capsys.disabled():
        sys.stderr.write(f"{{os.getpid()}} has {{made}}\\n")
"""


@pytest.fixture(scope="module")
def all_ran(tmp_path_factory: pytest.TempPathFactory) -> "subprocess.CompletedProcess[str]":
    return ran(tmp_path_factory.mktemp("ran"), OF_EVERY_KIND)


def test_each_test_runs_once_in_one_of_the_workers(
    all_ran: "subprocess.CompletedProcess[str]",
) -> None:
    assert all_ran.returncode == 1
    assert all_ran.stdout.splitlines()[-1].startswith(
        f"2 failed, {MANY + 9 - 3} passed, 1 skipped in "
    )
    said = re.findall(r"^said (\d+) by (\d+) in (\S+)$", all_ran.stdout, re.MULTILINE)
    assert sorted(int(number) for number, _, _ in said) == sorted({*range(MANY)} - {8, 9})
    assert len({place for _, _, place in said}) == len(said)
    # One of two was killed, and another one replaced it.
    assert len({worker for _, worker, _ in said}) <= 3


def test_a_test_that_fails_is_told_with_its_reason(
    all_ran: "subprocess.CompletedProcess[str]",
) -> None:
    assert "FAILED test_it.py::test_alone[7] - AssertionError: it is seven" in all_ran.stdout


def test_workers_share_a_folder_that_was_named_and_leave_each_other_s_alone(
    tmp_path: Path,
) -> None:
    text = f"""
@pytest.mark.parametrize("n", range({MANY}))
def test_it(n, tmp_path):
    (tmp_path / "mine").touch()
    time.sleep(0.01)
    assert (tmp_path / "mine").exists()
"""
    done = ran(tmp_path, text, "--basetemp=kept")
    assert f"{MANY} passed" in done.stdout, done.stdout
    assert len(list((tmp_path / "kept").glob("of-*"))) == 2


def test_a_test_whose_worker_ends_has_failed(all_ran: "subprocess.CompletedProcess[str]") -> None:
    assert "FAILED test_it.py::test_alone[9] - its process ended: -9" in all_ran.stdout


def test_what_is_marked_together_shares_its_fixture_in_one_worker(
    all_ran: "subprocess.CompletedProcess[str]",
) -> None:
    has = re.findall(r"^(\d+) has (.*)$", all_ran.stderr, re.MULTILINE)
    assert [made for _, made in has] == [str([*range(n + 1)]) for n in range(9)]
    assert len({worker for worker, _ in has}) == 1
    assert re.findall(r"at the end: (.*)", all_ran.stderr) == [str([*range(9)])]


def test_what_is_marked_together_by_one_name_is_one_unit_over_all_files() -> None:
    class Item(SimpleNamespace):
        def get_closest_marker(self, _name: str) -> pytest.Mark | None:
            return getattr(self.mark, "mark", None)

    named, together = pytest.mark.together("it"), pytest.mark.together
    marks = [
        ("a.py", named),
        ("a.py", together),
        ("b.py", named),
        ("b.py", None),
        ("a.py", together),
    ]
    items = [
        cast("pytest.Item", Item(path=path, nodeid=f"{path}::{number}", mark=mark))
        for number, (path, mark) in enumerate(marks)
    ]
    assert forked_run.units_of(items) == [[0, 2], [1, 4], [3]]


def test_after_one_failure_no_test_is_begun_where_one_is_enough(tmp_path: Path) -> None:
    text = "@pytest.mark.parametrize('n', range(2_000))\ndef test_it(n):\n    assert n\n"
    done = ran(tmp_path, text, "--maxfail=1")
    assert done.returncode == 1
    [passed] = re.findall(r"1 failed, (\d+) passed", done.stdout)
    assert int(passed) < 1_500


def test_an_interrupt_ends_the_workers_and_what_they_have_started(tmp_path: Path) -> None:
    text = """
@pytest.fixture
def daemon():
    yield
    sys.__stderr__.write("the daemon has ended")

def test_it(daemon):
    os.kill(os.getppid(), signal.SIGINT)
    time.sleep(60)
"""
    done = ran(tmp_path, text)
    assert done.returncode == signal.SIGINT
    assert "the daemon has ended" in done.stderr
