"""Regenerate the pages of the manual from the command trees, the error codes and the tables.

Usage:
    python scripts/gen_manuals.py            # write into man/
    python scripts/gen_manuals.py OUT_DIR    # write elsewhere (the freshness test does)
"""

import sys
from pathlib import Path

from manual_pages import pages
from typer.main import get_command

from dssctl.command_tree import CommandNode, command_tree, tree_of
from dssd.command_line import program

TARGET = Path(__file__).resolve().parent.parent / "man"


def generate(folder: Path) -> None:
    """Write every page, and remove those of commands that are gone."""
    made = {folder / page.file: page.source for page in pages(command_tree(), _daemon())}
    for path, source in made.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    for path in folder.glob("man*/*"):
        if path not in made:
            path.unlink()


def _daemon() -> CommandNode:
    return tree_of(get_command(program), "dssd")


if __name__ == "__main__":
    generate(Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET)
