"""Draw a rewind with its undo, as an operator sees them at a terminal, from a daemon of its own.

Usage:
    python scripts/draw_rewind.py OUT.svg
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pexpect
from draw_terminal import FONT_FACES
from rich.console import Console
from rich.text import Text

COLUMNS, ROWS = 96, 50
TIMEOUT_S = 60
RECORDS = 6
QUESTION = r"\[y/N\] "
UNDO = re.compile(r"dssctl ops undo [0-9]+")


class Operator:
    """Types commands, agrees to plans, and keeps what the terminal showed."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self.seen = ""

    def type(self, line: str, *, fails: bool = False) -> None:
        """One command to its end; a question is answered with yes."""
        arguments = ["-m", "dssctl", "--endpoint", self._endpoint, *shlex.split(line)[1:]]
        child = pexpect.spawn(
            sys.executable,
            arguments,
            dimensions=(ROWS, COLUMNS),
            encoding="utf-8",
            timeout=TIMEOUT_S,
        )
        shown = ""
        while child.expect([QUESTION, pexpect.EOF]) == 0:
            shown += f"{child.before}{child.after}"
            child.sendline("y")
        shown += child.before or ""
        child.close()
        if (child.exitstatus != 0) is not fails:
            raise RuntimeError(f"{line} ended with {child.exitstatus}: {shown}")
        self.seen += f"\x1b[1;32m$\x1b[0m \x1b[1m{line}\x1b[0m\n{shown}\n"

    def make_ready(self, line: str, typed: str = "") -> None:
        """One command that nobody needs to see."""
        arguments = ["-m", "dssctl", "--endpoint", self._endpoint, *shlex.split(line)[1:]]
        subprocess.run(
            [sys.executable, *arguments],
            input=typed.encode(),
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )


def recorded(endpoint: str) -> str:
    """A group that has read all, goes back to the beginning, and is put where it was."""
    operator = Operator(endpoint)
    operator.make_ready("dssctl topics create orders")
    operator.make_ready("dssctl groups create billing@orders/# --start earliest")
    operator.make_ready("dssctl produce orders", "".join(f"{at}\n" for at in range(RECORDS)))
    operator.make_ready(f"dssctl consume orders/# --group billing -n {RECORDS}")
    operator.type("dssctl offsets rewind billing --to earliest --reason 'ticket 12'")
    operator.type("dssctl groups ls --columns name,state,lag")
    undo = UNDO.search(operator.seen)
    if undo is None:
        raise RuntimeError("no undo was offered")
    operator.type(undo[0])
    operator.type("dssctl groups ls --columns name,state,lag")
    return operator.seen.replace("\r\n", "\n").rstrip()


def drawn_of(out: Path, title: str, record: Callable[[str], str]) -> None:
    """Serve, record at the daemon's address, and write the picture."""
    os.environ |= {"DSSCTL_CONNECT_WAIT": str(TIMEOUT_S), "DSSCTL_CONFIG": os.devnull}
    with tempfile.TemporaryDirectory(prefix="dss-", dir="/tmp") as folder:
        endpoint = f"unix:{folder}/s"
        serve = ["-m", "dssd", "serve", "--data-dir", f"{folder}/d", "--listen", endpoint]
        with subprocess.Popen([sys.executable, *serve], stderr=subprocess.DEVNULL) as daemon:
            try:
                shown = record(endpoint)
            finally:
                daemon.terminate()
    console = Console(record=True, width=COLUMNS, file=sys.stderr, color_system="truecolor")
    console.print(Text.from_ansi(shown))
    out.write_text(FONT_FACES.sub("", console.export_svg(title=title)))


if __name__ == "__main__":
    drawn_of(Path(sys.argv[1]), "a rewind, and its undo", recorded)
