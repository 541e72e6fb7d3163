"""The runner of the whole proof: it goes on where it was interrupted, and only there."""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dss_sim.mutants.catalogue import MUTANTS
from dss_sim.proof.__main__ import main, prove
from dss_sim.proof.ledger import Ended, Ledger, fingerprint
from dss_sim.proof.steps import STEPS, Step

REPO = Path(__file__).resolve().parents[3]
MORE_IN_PROOF = re.compile(r"\bshare\(|\bonly_in_proof\b|^from hypothesis ", re.MULTILINE)

PATIENCE_S = 60.0
LOOK_AGAIN_S = 0.02


def step(name: str, script: str, *arguments: str) -> Step:
    return Step("kind", name, (sys.executable, "-c", script, *arguments), 0.1)


def noting(name: str) -> Step:
    """A step that leaves a line each time that it runs."""
    return step(name, f"print('x', file=open('.cache/{name}', 'a'))")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkout with one commit."""
    (tmp_path / ".gitignore").write_text(".cache\n")
    (tmp_path / ".cache").mkdir()
    author = ("-c", "user.name=n", "-c", "user.email=e")
    for arguments in (("init", "-q"), ("add", "."), (*author, "commit", "-qm", "one")):
        subprocess.run(["git", "-C", str(tmp_path), *arguments], check=True)
    return tmp_path


def runs(root: Path, name: str) -> int:
    path = root / ".cache" / name
    return len(path.read_text().splitlines()) if path.exists() else 0


def test_a_step_that_passed_is_not_run_again_and_one_that_failed_is(root: Path) -> None:
    steps = [noting("good"), step("bad", "import sys; print('why'); sys.exit(3)")]
    assert prove(steps, root) == 1
    assert prove(steps, root) == 1
    assert runs(root, "good") == 1
    folder = root / ".cache" / "proof"
    page = (folder / "report.md").read_text()
    assert "| kind | 2 | 1 | 1 |" in page
    assert (folder / "said" / "bad.txt").read_text() == "why\n"
    assert "why" in page


def lives(pid: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


INTERRUPTED = """
import os, subprocess, sys
worker = subprocess.Popen(["sleep", "90"])
open(".cache/worker", "w").write(str(worker.pid))
os.kill(os.getppid(), int(sys.argv[1]))
worker.wait()
"""


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_step_that_is_interrupted_leaves_nothing_behind_and_is_run_again(
    sent: signal.Signals, root: Path
) -> None:
    with pytest.raises(KeyboardInterrupt):
        prove([step("long", INTERRUPTED, f"{sent:d}")], root)
    pid = int((root / ".cache" / "worker").read_text())
    until = time.monotonic() + PATIENCE_S
    while lives(pid):
        assert time.monotonic() < until, "its worker lives on"
        time.sleep(LOOK_AGAIN_S)
    assert not Ledger(root / ".cache" / "proof" / f"{fingerprint(root)}.json").passed("long")


def test_an_interrupted_proof_goes_on_behind_the_last_step_that_ended(root: Path) -> None:
    steps = [noting("first"), step("second", "import sys; sys.exit(0)"), noting("third")]
    assert prove(steps[:1], root) == 0
    assert prove(steps, root) == 0
    assert (runs(root, "first"), runs(root, "third")) == (1, 1)


def test_other_sources_are_proven_anew(root: Path) -> None:
    assert prove([noting("good")], root) == 0
    (root / "new.py").write_text("1\n")
    assert prove([noting("good")], root) == 0
    (root / "new.py").write_text("2\n")
    assert prove([noting("good")], root) == 0
    assert runs(root, "good") == 3


def test_the_full_proof_is_asked_for(root: Path) -> None:
    script = "import os, sys; sys.exit(os.environ['DSS_PROOF'] != 'full')"
    assert prove([step("full", script)], root) == 0


def test_a_step_in_a_fresh_checkout_may_keep_what_it_finds_beside_the_ledger(root: Path) -> None:
    script = "from pathlib import Path; Path('.cache/proof/kept').mkdir()"
    assert prove([step("keeps", script)], root) == 0


def test_a_ledger_reads_what_it_wrote(tmp_path: Path) -> None:
    Ledger(tmp_path / "a.json").note("one", Ended(True, 1.5, "said"))
    assert Ledger(tmp_path / "a.json").ended == {"one": Ended(True, 1.5, "said")}


def test_the_fingerprint_of_a_clean_checkout_is_its_commit(root: Path) -> None:
    assert "-" not in fingerprint(root)
    (root / ".gitignore").write_text("else\n")
    assert "-" in fingerprint(root)


def test_the_steps_have_every_mutant_once_and_name_files_that_exist() -> None:
    names = [part for each in STEPS if each.kind == "mutants" for part in each.command[3:]]
    assert sorted(names) == sorted(mutant.name for mutant in MUTANTS)
    assert len({each.name for each in STEPS}) == len(STEPS)
    paths = [part for each in STEPS for part in each.command if part.startswith("tests")]
    assert [path for path in paths if not (REPO / path).exists()] == []


def test_every_test_that_runs_a_sample_runs_in_full_in_some_step() -> None:
    full = [REPO / part for each in STEPS if each.full for part in each.command]
    sampled = {
        path
        for path in (REPO / "tests").rglob("test_*.py")
        if MORE_IN_PROOF.search(path.read_text())
    } - {Path(__file__)}
    assert sampled
    assert [path for path in sampled if not {path, *path.parents} & {*full}] == []


def test_the_command_lists_its_kinds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    assert "kill at every system call" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["--only", "nothing of the kind"])
