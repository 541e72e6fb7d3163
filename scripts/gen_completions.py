"""Regenerate the completion scripts of `dssctl` from its command tree.

Usage:
    python scripts/gen_completions.py            # write into completions/
    python scripts/gen_completions.py OUT_DIR    # write elsewhere (the freshness test does)
"""

import sys
from pathlib import Path

from completion_scripts import scripts

from dssctl.command_tree import command_tree

TARGET = Path(__file__).resolve().parent.parent / "completions"


def generate(folder: Path) -> None:
    """Write every script."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in scripts(command_tree()).items():
        (folder / name).write_text(text)


if __name__ == "__main__":
    generate(Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET)
