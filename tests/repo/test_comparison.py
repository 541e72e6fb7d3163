"""The comparison with other tools says of this one only what is there."""

import re
from functools import cache
from pathlib import Path

import pytest

from dssctl.command_tree import command_tree

PAGE = Path(__file__).resolve().parents[2] / "docs" / "comparison.md"
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in PAGE.read_text().splitlines()
    if line.startswith("| ") and not line.startswith(("| what |", "|---"))
]
NAMED = re.compile(r"`dssctl ([^`]+)`")


@cache
def options() -> dict[str, set[str]]:
    """Of each command, by its words."""
    return {
        " ".join(each.words): {
            flag for option in each.options for flag in (*option.flags, *option.off_flags)
        }
        for each in command_tree().commands()
    }


def test_every_row_has_its_four_columns() -> None:
    assert len(ROWS) > 40
    assert all(len(row) == 4 for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_what_is_said_to_be_there_names_commands_that_are(row: list[str]) -> None:
    _, _, here, commands = row
    answer = re.match("yes|partly|no", here)
    assert answer is not None
    named = NAMED.findall(commands)
    assert bool(named) == (answer[0] != "no")
    for each in named:
        words = [word for word in each.split() if not word.startswith("-")]
        flags = {word for word in each.split() if word.startswith("-")}
        known = {
            name: known for name, known in options().items() if name.split()[: len(words)] == words
        }
        assert known, f"there is no dssctl {' '.join(words)}"
        assert any(flags <= had for had in known.values()), f"{each}: {flags}"
