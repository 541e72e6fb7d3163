"""Regenerate the schemas of `dssctl`: of its JSON, and of its command tree.

A change of either that takes something away breaks programs; it is seen here first.

Usage:
    python scripts/gen_schemas.py            # write into cli/dssctl/schemas/
    python scripts/gen_schemas.py OUT_DIR    # write elsewhere (the freshness test does)
"""

import json
import sys
from pathlib import Path

from json_schemas import schema

from dssctl.help_json import help_json

TARGET = Path(__file__).resolve().parent.parent / "cli/dssctl/schemas"


def generate(folder: Path) -> None:
    """Write both."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "output.schema.json").write_text(json.dumps(schema(), indent=1) + "\n")
    (folder / "commands.json").write_text(help_json() + "\n")


if __name__ == "__main__":
    generate(Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET)
