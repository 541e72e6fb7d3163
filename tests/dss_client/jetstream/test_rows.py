"""Each row of the checklist has a test that names it, or a reason why it does not apply."""

import re
from pathlib import Path

REPO = Path(__file__).resolve().parents[3]
PAGE = REPO / "docs" / "jetstream.md"
COUNTS = {
    "V": 17, "R": 10, "X": 18, "C": 14, "T": 15, "A": 17,
    "H": 8, "G": 4, "F": 9, "P": 20, "U": 11, "O": 13,
}  # fmt: skip
ROWS = {
    f"{letter}{number:02}" for letter, count in COUNTS.items() for number in range(1, count + 1)
}
ROW = re.compile(r"(?i)(?<![a-z0-9])([VRXCTAHGFPUO][0-9]{2})(?![0-9])")


def stated() -> dict[str, str]:
    """By row, what the page says of it."""
    table = PAGE.read_text().split("## The rows")[1].split("\n## ")[0]
    told: dict[str, str] = {}
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        for row in ROW.findall(cells[0]) if len(cells) == 3 else ():
            assert row not in told, row
            told[row] = cells[2]
    return told


def named() -> set[str]:
    """Rows that the name of a test, or of a case of one, names."""
    names: set[str] = set()
    for path in Path(__file__).parent.glob("test_*.py"):
        if path == Path(__file__):
            continue
        text = path.read_text()
        tests = re.findall(r"def (test_\w+)|[\"']([A-Z][0-9]{2} [^\"']+)[\"']|# (.*)", text)
        found = (each for test in tests for each in test)
        names |= {row.upper() for each in found for row in ROW.findall(each.replace("_", " "))}
    return names


def test_every_row_is_tested_or_does_not_apply() -> None:
    told = stated()
    assert len(ROWS) == 156
    assert told.keys() == ROWS
    assert {row for row, why in told.items() if why == "test"} <= named()
    assert [row for row, why in told.items() if why != "test" and len(why.split()) < 5] == []
