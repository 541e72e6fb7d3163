"""Run the whole proof, or continue it: ``python -m dss_sim.proof``.

Steps that passed on these sources are not run again; those that failed are. Exit code 0 once all
have passed. The report is written after each step, to `.cache/proof/report.md`, and the whole
output of a step to `.cache/proof/said/`.
"""

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from dss_sim.proof.ledger import Ended, Ledger, fingerprint
from dss_sim.proof.report import report
from dss_sim.proof.steps import STEPS, Step, kinds

TAIL_LINES = 40


def main(arguments: Sequence[str] | None = None, root: Path | None = None) -> int:
    """Parse the arguments and run the steps that are left."""
    parser = argparse.ArgumentParser(prog="python -m dss_sim.proof", description=__doc__)
    parser.add_argument("--only", metavar="KIND", help="the steps of one kind")
    parser.add_argument("--list", action="store_true", help="list the kinds, and run nothing")
    chosen = parser.parse_args(arguments)
    if chosen.list:
        print("\n".join(kinds()))
        return 0
    if chosen.only is not None and chosen.only not in kinds():
        parser.error(f"no such kind: {chosen.only}; --list shows them")
    steps = [step for step in STEPS if chosen.only in (None, step.kind)]
    return prove(steps, root or Path.cwd())


def prove(steps: Sequence[Step], root: Path) -> int:
    """Run the steps that have not passed yet; returns the exit code, 1 if one failed."""
    folder, sources = root / ".cache" / "proof", fingerprint(root)
    ledger = Ledger(folder / f"{sources}.json")
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    quiet = not sys.stderr.isatty()
    with _terminated_as_interrupted(), Progress(*columns, disable=quiet) as progress:
        task = progress.add_task("proof", total=sum(step.minutes for step in steps))
        for step in steps:
            if not ledger.passed(step.name):
                _run(step, root, ledger, progress, task)
                (folder / "report.md").write_text(report(sources, steps, ledger.ended))
            progress.advance(task, step.minutes)
    print(report(sources, steps, ledger.ended), end="")
    return 0 if all(ledger.passed(step.name) for step in steps) else 1


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """Let SIGTERM end the running step too, as Ctrl-C does."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _run(step: Step, root: Path, ledger: Ledger, progress: Progress, task: TaskID) -> None:
    progress.update(task, description=step.name)
    began = perf_counter()
    passed, output = _ended(step, root)
    ledger.keep(step.name, output)
    said = "\n".join(output.splitlines()[-TAIL_LINES:])
    ledger.note(step.name, Ended(passed, perf_counter() - began, said))
    if not passed:
        progress.console.print(f"{step.name} failed", markup=False)


def _ended(step: Step, root: Path) -> tuple[bool, str]:
    """Run its command to its end; whether it passed, and its output."""
    with subprocess.Popen(
        step.command,
        cwd=root,
        env=os.environ | {"DSS_PROOF": "full" if step.full else "sample"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate()
        except BaseException:
            # If only the process itself were killed, its workers would wait for work for ever.
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return process.returncode == 0, output


if __name__ == "__main__":
    sys.exit(main())
