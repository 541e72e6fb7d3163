"""Each command and each program on a page is run by a test, or its mark says why it is not."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.page_blocks import Block, blocks, blocks_of

REPO = Path(__file__).resolve().parents[2]
PAGES = sorted(
    path.relative_to(REPO).as_posix()
    for path in (
        REPO / "README.md",
        REPO / "CONTRIBUTING.md",
        REPO / "bench/README.md",
        *(REPO / "docs").rglob("*.md"),
    )
)
MARKS_MAX = 30
"""How many marks there may be on all pages. Lower it where one goes; each has to be worth it."""


def calls_of_blocks() -> Iterator[tuple[Path, ast.Call]]:
    """Where tests take blocks of a page."""
    for path in (REPO / "tests").rglob("*.py"):
        text = path.read_text()
        if "support.page_blocks import" in text and path != Path(__file__):
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "blocks":
                    yield path, node


def taken() -> set[tuple[str, int]]:
    """Page and line of each block that a test takes."""
    found: list[Block] = []
    for path, call in calls_of_blocks():
        try:
            words = [ast.literal_eval(each) for each in call.args]
            named = {each.arg or "": ast.literal_eval(each.value) for each in call.keywords}
        except ValueError:
            pytest.fail(f"{path}:{call.lineno}: write the page and its languages out")
        found += blocks(*words, **named)
    return {(each.page, each.line) for each in found}


def test_each_block_is_run_or_says_why_it_is_not() -> None:
    due = {(each.page, each.line) for page in PAGES for each in blocks_of(page) if each.is_run}
    assert sorted(due - taken()) == []


def test_no_mark_comes_unnoticed() -> None:
    assert sum(bool(each.why_not) for page in PAGES for each in blocks_of(page)) <= MARKS_MAX


def test_a_mark_leaves_out_commands_that_are_there() -> None:
    idle = [
        f"{each.page}:{each.line} {word}"
        for page in PAGES
        for each in blocks_of(page)
        for word in each.left_out
        if not re.search(rf"^(\$ )?{re.escape(word)}\b", each.text, re.MULTILINE)
    ]
    assert idle == []


def test_pages_name_targets_that_make_has() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (REPO / "Makefile").read_text(), re.MULTILINE))
    named = {
        target
        for page in PAGES
        for each in blocks_of(page)
        for target in re.findall(r"^make ([a-z-]+)", each.text, re.MULTILINE)
    }
    assert named - targets == set()
    assert named
