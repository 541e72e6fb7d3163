"""The one table of keys; help and hints are generated from it.

Invariant: no key without Shift changes anything in the daemon.
"""

from collections.abc import Mapping
from typing import NamedTuple


class Key(NamedTuple):
    """A key, or several that do the same."""

    keys: tuple[str, ...]
    """As Textual names them."""
    shown: str
    does: str
    """The name of the move; see `dssctl.top.stage.moves` and the terminal's own."""
    hint: str
    """A word for the line of hints; empty: only in the help."""
    help: str


KEYS = (
    Key(("enter",), "enter", "open", "open", "open the chosen row"),
    Key(("escape", "backspace", "q"), "esc", "back", "back", "clear the filter, else go back"),
    Key(("colon",), ":", "command", "command", "go to a screen: :groups, :topics, :group NAME"),
    Key(("slash",), "/", "filter", "filter", "show some rows: words, !word, lag>1000, state=idle"),
    Key(("a",), "a", "actions", "actions", "what can be changed here"),
    Key(("tab", "right_square_bracket"), "tab", "next_tab", "list", "the next list of this screen"),
    Key(("shift+tab", "left_square_bracket"), "shift+tab", "previous_tab", "", "the list before"),
    Key(("less_than_sign",), "<", "sort_left", "", "sort by the column before"),
    Key(("greater_than_sign",), ">", "sort_right", "sort", "sort by the next column"),
    Key(("r",), "r", "reverse", "", "turn the order round"),
    Key(("z",), "z", "faults", "faults", "only what is faulty"),
    Key(("d",), "d", "describe", "describe", "all that is known of the chosen row"),
    Key(("e",), "e", "events", "", "events of what is chosen"),
    Key(("o",), "o", "command_line", "CLI", "the command line that shows the same"),
    Key(("c",), "c", "copy", "", "copy that line, or the chosen key, to the clipboard"),
    Key(("p",), "p", "freeze", "freeze", "let what is shown stand still, or go on"),
    Key(("t",), "t", "theme", "", "light or dark"),
    Key(("up", "k"), "k", "up", "", "one row up"),
    Key(("down", "j"), "j", "down", "", "one row down"),
    Key(("pageup", "ctrl+u", "ctrl+b"), "pgup", "page_up", "", "a page up"),
    Key(("pagedown", "ctrl+d", "ctrl+f", "space"), "pgdn", "page_down", "", "a page down"),
    Key(("home", "g"), "g", "top", "", "the first row"),
    Key(("end", "G"), "G", "bottom", "", "the last row"),
    Key(("n",), "n", "later_records", "", "of a stream: the records behind these"),
    Key(("b",), "b", "earlier_records", "", "of a stream: the records before these"),
    Key(("question_mark", "f1"), "?", "help", "help", "this page"),
    Key(("ctrl+q",), "ctrl+q", "quit", "", "end the dashboard"),
    Key(("ctrl+c",), "ctrl+c", "interrupt", "", "end it, with exit code 130"),
    Key(("ctrl+z",), "ctrl+z", "suspend", "", "back to the shell; fg brings it back"),
)

REPLAY_KEYS = (
    Key(("comma",), ",", "jump_back", "", "of a recording: some seconds back"),
    Key(("full_stop",), ".", "jump_on", "", "of a recording: some seconds on"),
    Key(("plus",), "+", "faster", "", "of a recording: twice as fast"),
    Key(("minus",), "-", "slower", "", "of a recording: half as fast"),
)

DOES: Mapping[str, str] = {key: entry.does for entry in (*KEYS, *REPLAY_KEYS) for key in entry.keys}
"""What each key does."""
