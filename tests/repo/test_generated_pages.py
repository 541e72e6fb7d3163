"""What is made of the command tree is what the tree makes of it now."""

import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("script", "folder", "alone"),
    [
        ("gen_completions.py", "completions", True),
        ("gen_help.py", "cli/dssctl/help", True),
        ("gen_manuals.py", "man", True),
        ("gen_schemas.py", "cli/dssctl/schemas", True),
        ("gen_golden.py", "tests/dssctl/golden", True),
        ("gen_sync.py", "client/dss_client/sync", False),
    ],
)
def test_generated_files_are_fresh(script: str, folder: str, alone: bool, tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(REPO / "scripts" / script), str(tmp_path)], check=True)
    made, kept = contents(tmp_path), contents(REPO / folder)
    names = sorted(made.keys() | kept.keys() if alone else made.keys())
    assert [name for name in names if made.get(name) != kept.get(name)] == [], "run: make docs"


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
