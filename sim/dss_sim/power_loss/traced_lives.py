"""Lives of the script under strace, as steps.

Invariant: the model of the steps equals the contents of the directory, byte for byte, or
`NotUnderstood` is raised. So nothing that a process did to its files escaped the trace.
"""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import compress, product
from pathlib import Path

from dss_sim.power_loss.crashes import final_image
from dss_sim.power_loss.image import Image
from dss_sim.power_loss.image_files import read_image
from dss_sim.power_loss.operations import Step
from dss_sim.power_loss.trace import CALLS, NEVER, NotUnderstood, TraceReader

LIFE_S_MAX = 60
"""Longer than the life's own limit."""
STRING_BYTES_MAX = 4 << 20
"""How much of a buffer strace shows: more than any write of the script."""


def recorded(root: Path, lives: Sequence[str], start: Image | None = None) -> list[Step]:
    """Live these lives on the directory, one after the other; returns their steps.

    ``start`` is what the directory holds before.

    Raises:
        NotUnderstood: the model does not follow.
    """
    reader = TraceReader(str(root))
    log = root.with_name(f"{root.name}.strace")
    steps: list[Step] = []
    for life in lives:
        _live(life, root, log)
        after = reader.steps(log.read_text().splitlines())
        steps = _as_it_was(steps, after, read_image(root), start)
    return steps


def _as_it_was(
    before: list[Step], after: list[Step], left: Image, start: Image | None
) -> list[Step]:
    """The steps of one more life; the directory tells whether what its end interrupted has
    happened."""
    sure = [step for step in after if step.ended != NEVER]
    perhaps = [replace(step, ended=step.began) for step in after if step.ended == NEVER]
    for happened in product((False, True), repeat=len(perhaps)):
        steps = [*before, *sure, *compress(perhaps, happened)]
        if left == final_image(steps, start):
            return steps
    model = final_image([*before, *sure], start)
    differs = {path for path, _ in left.files.items() ^ model.files.items()}
    raise NotUnderstood(f"the model has other files: {sorted(differs)}")


def _live(life: str, root: Path, log: Path) -> None:
    traced = ("strace", "-f", "--seccomp-bpf", "-qq", "-xx", "-o", str(log))
    command = (sys.executable, "-m", "dss_sim.power_loss", life, str(root))
    done = subprocess.run(
        [*traced, "-s", str(STRING_BYTES_MAX), "-e", f"trace={','.join(CALLS)}", *command],
        check=False,
        capture_output=True,
        text=True,
        timeout=LIFE_S_MAX,
    )
    assert done.returncode == 0, done.stderr
