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


LINE_MAX = 160


def generate(folder: Path) -> None:
    """Write both."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "output.schema.json").write_text(laid_out(schema()) + "\n")
    (folder / "commands.json").write_text(laid_out(json.loads(help_json())) + "\n")


def laid_out(value: object, indent: str = "") -> str:
    """JSON in which what fits on a line stands on one: a field, an option."""
    short = json.dumps(value)
    if len(indent) + len(short) <= LINE_MAX or not isinstance(value, dict | list):
        return short
    inner = f"{indent} "
    if isinstance(value, list):
        parts, ends = [laid_out(each, inner) for each in value], "[]"
    else:
        parts, ends = [f"{json.dumps(k)}: {laid_out(v, inner)}" for k, v in value.items()], "{}"
    return f"{ends[0]}\n{inner}" + f",\n{inner}".join(parts) + f"\n{indent}{ends[1]}"


if __name__ == "__main__":
    generate(Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET)
