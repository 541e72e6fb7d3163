"""The fenced blocks of the pages, and those of them that a test runs.

A test takes the blocks that it runs by `blocks`, with its arguments written out in the call, so
that `tests/repo/test_page_blocks.py` knows all that are run. What no test can run is marked on the
page, in the line before the block, where a reader of the page does not see it::

    <!-- not run: the reason -->
    <!-- not run (sudo, scp): the reason -->

The second form leaves out the commands that begin with one of these words. Invariant: what is
marked is given to no test.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
_FENCE = re.compile(
    r"^(?:<!-- not run(?: \((?P<some>[^)\n]+)\))?: (?P<why>[^\n]+) -->\n)?"
    r"(?P<fence>```)(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_MARK = re.compile(r"^<!-- not run\b.*$", re.MULTILINE)
_COMMAND = re.compile(r"^(\$ |dssctl |dssd |make )", re.MULTILINE)
_HEADING = re.compile(r"^(#+) (.+)$", re.MULTILINE)
_DOCUMENT = re.compile(r"<<'(\w+)'")
_COMMENT = re.compile(r"\s+# .*$")


@dataclass(frozen=True, slots=True)
class Typed:
    """A command of a page as it is typed, and what the page shows of its output."""

    command: str
    comment: str
    shown: str


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: where it begins, what is in it, and what its mark says."""

    page: str
    line: int
    language: str
    text: str
    why_not: str
    left_out: tuple[str, ...]
    """Words that commands begin with which are not run; empty: the mark is for all of it."""

    @property
    def is_run(self) -> bool:
        """Whether a test has to run it, if not all of its commands.

        Without a language and a command it is output or a picture.
        """
        is_for_all = bool(self.why_not) and not self.left_out
        return not is_for_all and bool(self.language or _COMMAND.search(self.text))

    def commands(self) -> list[Typed]:
        """Those that are run, in order."""
        has_prompts = bool(re.search(r"^\$ ", self.text, re.MULTILINE))
        parts = self._after_prompts() if has_prompts else self._lines()
        return [each for each in parts if not each.command.startswith(self.left_out or ("\0",))]

    def _after_prompts(self) -> Iterator[Typed]:
        for part in re.split(r"^\$ ", self.text, flags=re.MULTILINE)[1:]:
            first, _, rest = part.partition("\n")
            if document := _DOCUMENT.search(first):
                body, _, rest = rest.partition(f"\n{document[1]}\n")
                first = f"{first}\n{body}\n{document[1]}"
            while first.endswith("\\"):
                more, _, rest = rest.partition("\n")
                first += f"\n{more}"
            yield _typed(first, rest)

    def _lines(self) -> Iterator[Typed]:
        lines = iter(self.text.splitlines())
        for line in lines:
            command = line
            if document := _DOCUMENT.search(line):
                while not command.endswith(f"\n{document[1]}"):
                    command += f"\n{next(lines)}"
            while command.endswith("\\"):
                command += f"\n{next(lines)}"
            if command.strip() and not command.startswith("#"):
                yield _typed(command, "")


def _typed(line: str, shown: str) -> Typed:
    command = _COMMENT.sub("", line)
    return Typed(command, line[len(command) :].strip(), shown)


def blocks_of(page: str) -> list[Block]:
    """All blocks of a page."""
    text = (REPO / page).read_text()
    found = [
        Block(
            page,
            text[: each.start("fence")].count("\n") + 1,
            each["language"],
            each["text"],
            each["why"] or "",
            tuple((each["some"] or "").split(", ")) if each["some"] else (),
        )
        for each in _FENCE.finditer(text)
    ]
    assert sum(bool(each.why_not) for each in found) == len(_MARK.findall(text)), (
        f"{page}: a mark is not in the line before a block"
    )
    return found


def blocks(page: str, *languages: str, section: str = "") -> list[Block]:
    """The blocks of a page, or of the section of this heading, that a test runs.

    Marked ones are left out. The arguments are literals; `tests/repo/test_page_blocks.py` reads
    them.
    """
    first, last = _lines_of(page, section)
    found = [
        each
        for each in blocks_of(page)
        if each.language in languages and first <= each.line < last and each.is_run
    ]
    assert found, f"{page} has no such block"
    return found


def _lines_of(page: str, section: str) -> tuple[int, int]:
    text = (REPO / page).read_text()
    lines = text.count("\n") + 1
    if not section:
        return 1, lines
    inside = {
        each.line + below for each in blocks_of(page) for below in range(each.text.count("\n") + 1)
    }
    headings = [
        (line, len(each[1]), each[2])
        for line, each in (
            (text[: each.start()].count("\n") + 1, each) for each in _HEADING.finditer(text)
        )
        if line not in inside
    ]
    [(first, level)] = [(line, level) for line, level, name in headings if name == section]
    behind = (line for line, other, _ in headings if line > first and other <= level)
    return first, next(behind, lines)
