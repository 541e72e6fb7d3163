"""Regenerate what every command of `dssctl` prints in every format, as its tests expect it.

Usage:
    python scripts/gen_golden.py            # write into tests/dssctl/golden/
    python scripts/gen_golden.py OUT_DIR    # write elsewhere (the freshness test does)
"""

import sys
from pathlib import Path

from output_examples import examples

TARGET = Path(__file__).resolve().parent.parent / "tests/dssctl/golden"


def generate(folder: Path) -> None:
    """Write a file a kind; what is of no kind any more goes."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.txt"):
        old.unlink()
    for name, text in examples():
        (folder / name).write_text(text)


if __name__ == "__main__":
    generate(Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET)
