"""The first picture, put on the terminal before Textual is loaded, as that takes longer.

Invariant: Textual draws the same sheet over it; if the dashboard ends before Textual has the
terminal, the terminal is restored. It must not know Textual.
"""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from dssctl.top.paint.spans import Span
from dssctl.top.stage.sheet import sheet
from dssctl.top.stage.view import Size, View, looked

GROUNDS = {"dark": ((0x12, 0x12, 0x12), (0xE0, 0xE0, 0xE0)), "light": ((0xE0,) * 3, (0x1F,) * 3)}
"""Background and foreground of the Textual themes that are used."""

_BOLD = frozenset({"strong", "head", "bad", "key"})
_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[0m\x1b[?1049l\x1b[?25h"


@contextmanager
def curtain(view: View, theme: str) -> Iterator[None]:
    """Show the view on the terminal until Textual takes it, within the block."""
    terminal = sys.__stderr__
    assert terminal is not None
    try:
        terminal.write(_ENTER + drawn(view, theme))
        terminal.flush()
        yield
    except BaseException:
        # If Textual restored the terminal already, this changes nothing.
        terminal.write(_LEAVE)
        terminal.flush()
        raise


def drawn(view: View, theme: str) -> str:
    """The view as a text for the terminal."""
    size = Size(shutil.get_terminal_size())
    ground = _ground(theme)
    lines = sheet(looked(replace(view, size=size))).lines
    return "".join(
        f"\x1b[{y};1H" + "".join(_span(span, ground) for span in spans)
        for y, spans in enumerate(lines, 1)
    )


def _ground(theme: str) -> str:
    """The escape sequence that begins a span; with colours only if the terminal surely has them."""
    if os.environ.get("NO_COLOR") or os.environ.get("COLORTERM") not in {"truecolor", "24bit"}:
        return "\x1b[0m"
    back, fore = (";".join(map(str, ground)) for ground in GROUNDS[theme])
    return f"\x1b[0;48;2;{back};38;2;{fore}m"


def _span(span: Span, ground: str) -> str:
    dim = "" if os.environ.get("NO_COLOR") else "\x1b[2m"
    weight = "\x1b[1m" if span.look in _BOLD else dim if span.look == "dim" else ""
    return f"{ground}{weight}{span.text}"
