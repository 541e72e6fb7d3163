"""What is on the terminal before Textual is."""

import io
import re
import sys

import pytest
from textual.theme import BUILTIN_THEMES

from dssctl.top.paint.frame import Badge
from dssctl.top.paint.spans import text_of
from dssctl.top.stage.sheet import sheet
from dssctl.top.stage.view import Size, View, looked
from dssctl.top.terminal.app import THEMES
from dssctl.top.terminal.curtain import GROUNDS, curtain, drawn

SIZE = (90, 20)
VIEW = View(Badge("unix:/here/s"), size=Size(SIZE))


@pytest.fixture(autouse=True)
def terminal(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    monkeypatch.setenv("COLUMNS", str(SIZE[0]))
    monkeypatch.setenv("LINES", str(SIZE[1]))
    monkeypatch.delenv("NO_COLOR", raising=False)
    written = io.StringIO()
    monkeypatch.setattr(sys, "__stderr__", written)
    return written


def test_it_is_the_sheet_line_by_line() -> None:
    lines = re.sub(r"\x1b\[[0-9;]*m", "", drawn(VIEW, "dark")).split("\x1b[")[1:]
    expected = [text_of(each) for each in sheet(looked(VIEW)).lines]
    assert lines == [f"{y};1H{text}" for y, text in enumerate(expected, 1)]
    assert any("waiting for the daemon" in each for each in expected)


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_it_has_the_grounds_of_the_theme_that_comes(theme: str) -> None:
    colours = BUILTIN_THEMES[THEMES[theme]].to_color_system().generate()
    back, fore = ("#" + bytes(ground).hex().upper() for ground in GROUNDS[theme])
    assert (back, fore) == (colours["background"].upper(), colours["foreground"].upper())


def test_colours_are_for_terminals_that_have_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLORTERM", "truecolor")
    assert "48;2;18;18;18" in drawn(VIEW, "dark")
    monkeypatch.setenv("NO_COLOR", "1")
    assert "48;2" not in drawn(VIEW, "dark")


def test_without_colours_nothing_is_dim(monkeypatch: pytest.MonkeyPatch) -> None:
    dim = "\x1b[2m"
    assert dim in drawn(VIEW, "dark")
    monkeypatch.setenv("NO_COLOR", "1")
    assert dim not in drawn(VIEW, "dark")


def test_what_ends_it_early_leaves_the_terminal_as_it_was(terminal: io.StringIO) -> None:
    with pytest.raises(KeyboardInterrupt), curtain(VIEW, "dark"):
        raise KeyboardInterrupt
    assert terminal.getvalue().startswith("\x1b[?1049h")
    assert terminal.getvalue().endswith("\x1b[?1049l\x1b[?25h")


def test_textual_takes_the_terminal_as_it_is(terminal: io.StringIO) -> None:
    with curtain(VIEW, "dark"):
        drawn_before = terminal.getvalue()
    assert terminal.getvalue() == drawn_before
