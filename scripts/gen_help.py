"""Regenerate the help of the whole program, at the widths that most terminals have.

Usage:
    python scripts/gen_help.py            # write into cli/dssctl/help/
    python scripts/gen_help.py OUT_DIR    # write elsewhere (the freshness test does)
"""

import os
import sys
from pathlib import Path

from dssctl.ready_help import WIDTHS, file_for
from dssctl.tree import PROGRAM, root

TARGET = Path(__file__).resolve().parent.parent / "cli/dssctl/help"


def generate(folder: Path) -> None:
    """Write the help as Typer does, once a width."""
    folder.mkdir(parents=True, exist_ok=True)
    for columns in WIDTHS:
        os.environ["COLUMNS"] = str(columns)
        program = root()
        context = program.make_context(PROGRAM, [], resilient_parsing=True)
        (folder / file_for(columns)).write_text(program.get_help(context) + "\n")


if __name__ == "__main__":
    generate(Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET)
