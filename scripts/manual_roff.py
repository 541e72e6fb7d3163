"""Pages of the manual as man(7) source: headings, paragraphs, lists, examples.

Invariant: whatever text comes in comes out as text; only this module knows what roff reads as
something else.
"""

import re
from collections.abc import Iterable

TITLE = "Durable Shared Subscriptions"

_CODE = re.compile(r"`([^`]+)`")
_FLAG = re.compile(r"(?<![\w-])(--?[A-Za-z][\w-]*)")


def text(plain: str) -> str:
    """A text as roff source: backslashes and hyphens as they are, no request at its beginning."""
    escaped = plain.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped[:1] in {".", "'"} else escaped


def bold(plain: str) -> str:
    """A text in bold."""
    return f"\\fB{text(plain)}\\fR"


def italic(plain: str) -> str:
    """What stands for a value."""
    return f"\\fI{text(plain)}\\fR"


def prose(plain: str) -> str:
    """Sentences, on one line: `code` and options in bold."""
    pieces = _CODE.split(" ".join(plain.split()))
    shown = [
        bold(piece) if at % 2 else _FLAG.sub(lambda flag: f"\x00{flag[0]}\x01", piece)
        for at, piece in enumerate(pieces)
    ]
    marked = "".join(piece if at % 2 else _with_flags(piece) for at, piece in enumerate(shown))
    return f"\\&{marked}" if marked[:1] in {".", "'"} else marked


def _with_flags(piece: str) -> str:
    """Text whose flags are between marks."""
    return text(piece).replace("\x00", "\\fB").replace("\x01", "\\fR")


class Page:
    """One page, from its heading on."""

    def __init__(self, name: str, section: int, about: str, *, version: str, date: str) -> None:
        self.name = name
        self.section = section
        self._lines = [
            '.\\" Made by scripts/gen_manuals.py (make docs); edit what it is made of.',
            f'.TH {text(name.upper())} {section} "{date}" "DSS {version}" "{TITLE}"',
            ".SH NAME",
            f"{text(name)} \\- {text(about)}",
        ]

    @property
    def file(self) -> str:
        """Where it is kept, below the folder of all pages."""
        return f"man{self.section}/{self.name}.{self.section}"

    @property
    def source(self) -> str:
        """The whole."""
        return "".join(f"{line}\n" for line in self._lines)

    def heading(self, title: str) -> None:
        """Begin a section."""
        self._lines.append(f".SH {title.upper()}")

    def subheading(self, title: str) -> None:
        """Begin a part of a section."""
        self._lines.append(f'.SS "{text(title)}"')

    def paragraph(self, plain: str) -> None:
        """Sentences."""
        self._lines += [".PP", prose(plain)] if not self._opens() else [prose(plain)]

    def usage(self, lines: Iterable[str]) -> None:
        """Command lines, as roff source, each on a line of its own."""
        for at, line in enumerate(lines):
            self._lines += [".br", line] if at else [line]

    def item(self, tag: str, plain: str) -> None:
        """A tag, as roff source, and what it means."""
        self._lines += [".TP", tag, prose(plain) if plain else "\\&"]

    def example(self, about: str, commands: Iterable[str]) -> None:
        """A sentence and what is typed."""
        self.paragraph(about)
        self._lines += [".PP", ".nf", ".RS"]
        self._lines += [text(line) for line in commands]
        self._lines += [".RE", ".fi"]

    def see_also(self, pages: Iterable[tuple[str, int]]) -> None:
        """Other pages, each by name and section."""
        self.heading("see also")
        others = [each for each in pages if each != (self.name, self.section)]
        for at, (name, section) in enumerate(others):
            comma = "," if at + 1 < len(others) else ""
            self._lines.append(f".BR {text(name)} ({section}){comma}")

    def _opens(self) -> bool:
        """Whether a heading stands right above, which is followed by no empty line."""
        return self._lines[-1].startswith((".SH", ".SS"))
