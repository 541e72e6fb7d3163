"""What is made of the command tree is what the tree makes of it now."""

import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("script", "folder"),
    [
        ("gen_completions.py", "cli/dssctl/completions"),
        ("gen_manuals.py", "cli/dssctl/man"),
        ("gen_schemas.py", "cli/dssctl/schemas"),
    ],
)
def test_generated_files_are_fresh(script: str, folder: str, tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(REPO / "scripts" / script), str(tmp_path)], check=True)
    made, kept = contents(tmp_path), contents(REPO / folder)
    differing = sorted(
        name for name in made.keys() | kept.keys() if made.get(name) != kept.get(name)
    )
    assert differing == [], "run: make docs"


def contents(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_text() for path in files}
