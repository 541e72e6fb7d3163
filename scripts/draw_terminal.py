"""Draw what a command prints as a picture of a terminal.

Usage:
    python scripts/draw_terminal.py OUT.svg TITLE COMMAND [ARGUMENT ...]

The command runs without a terminal, with colours on, 88 columns wide.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

COLUMNS = 88
FONT_FACES = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def draw(out: Path, title: str, command: list[str]) -> None:
    """Run the command, write its picture; its failure is ours."""
    environment = {**os.environ, "FORCE_COLOR": "1", "COLUMNS": str(COLUMNS)}
    printed = subprocess.run(
        command, check=True, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ).stdout.decode()
    console = Console(record=True, width=COLUMNS, file=sys.stderr, color_system="truecolor")
    console.print(Text.from_ansi(printed))
    # The picture must not fetch fonts from anywhere: the reader's own monospace will do.
    out.write_text(FONT_FACES.sub("", console.export_svg(title=title)))


if __name__ == "__main__":
    draw(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
