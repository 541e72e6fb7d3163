"""Questions to a person: what a change needs to know, and whether to make it.

Invariant: Cancel is chosen when a question appears, Escape is Cancel, and the enter key in a field
never agrees to a change. What has to be typed to agree has to be typed exactly.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Label

from dssctl.output.escape import escaped
from dssctl.top.paint.spans import Line, line
from dssctl.top.terminal.canvas import Canvas


@dataclass(frozen=True, slots=True)
class Asked:
    """A field of a question."""

    name: str
    label: str
    value: str = ""
    must_be: str = ""
    """Nothing else agrees; anything does where it is empty."""
    needed: bool = False
    """Whether something must be typed."""

    def agrees(self, typed: str) -> bool:
        """Whether what was typed will do."""
        return typed == self.must_be if self.must_be else bool(typed) or not self.needed


@dataclass(frozen=True, slots=True)
class Question:
    """What a person is asked."""

    title: str
    lines: tuple[Line, ...] = ()
    fields: tuple[Asked, ...] = ()
    agree: str = ""
    """On the button; without one there is nothing to agree to."""
    command: Callable[[Mapping[str, str]], str] | None = None
    """The command line that does the same, of what was typed."""
    enters: bool = False
    """Whether the enter key in a field goes on: where nothing is changed by it."""


class Dialog(ModalScreen[dict[str, str] | None]):
    """Asks a question; gives what was typed, or None."""

    BINDINGS: ClassVar = [("escape", "leave", "Cancel")]
    DEFAULT_CSS = """
    Dialog { align: center middle; background: $background 60%; }
    Dialog > Vertical {
        width: 90%; max-width: 110; height: auto; max-height: 100%;
        border: round $primary; padding: 0 1; background: $surface;
    }
    Dialog Canvas { height: auto; background: $surface; }
    Dialog Input { border: none; height: 1; padding: 0; background: $boost; }
    Dialog Input:focus { background: $primary 30%; }
    Dialog .field { height: 1; }
    Dialog .field Label { width: auto; padding: 0 1 0 0; }
    Dialog .field Input { width: 1fr; }
    Dialog #command { color: $foreground 70%; height: auto; }
    Dialog #buttons { height: auto; align: center middle; }
    Dialog Button { margin: 0 1; min-width: 12; }
    Dialog.-ascii > Vertical { border: ascii $primary; }
    """

    def __init__(self, question: Question, *, ascii_only: bool = False) -> None:
        super().__init__(classes="-ascii" if ascii_only else None)
        self._question = question

    def compose(self) -> ComposeResult:
        """Text, fields, the command line, buttons."""
        question = self._question
        with Vertical() as frame:
            frame.border_title = escaped(question.title).replace("[", "\\[")
            yield Canvas(id="text")
            for field in question.fields:
                with Horizontal(classes="field"):
                    yield Label(field.label, markup=False)
                    yield Input(field.value, id=field.name, select_on_focus=False)
            yield Label(self._command(), id="command", markup=False)
            with Horizontal(id="buttons"):
                yield Button("Cancel" if question.agree else "Close", id="cancel", compact=True)
                if question.agree:
                    yield Button(question.agree, id="agree", variant="warning", compact=True)

    def on_mount(self) -> None:
        """Cancel is chosen, unless there is only something to be typed."""
        text = self.query_one("#text", Canvas)
        text.can_focus = False
        text.styles.height = max(1, len(self._question.lines))
        text.show(self._question.lines or (line(""),))
        first = f"#{self._question.fields[0].name}" if self._question.enters else "#cancel"
        self.query_one(first).focus()
        self._allow()

    def typed(self) -> dict[str, str]:
        """What stands in the fields."""
        return {
            field.name: self.query_one(f"#{field.name}", Input).value.strip()
            for field in self._question.fields
        }

    def on_input_changed(self, _event: Input.Changed) -> None:
        """The command line says what is typed; the button can be pressed once all is right."""
        self.query_one("#command", Label).update(self._command())
        self._allow()

    def on_input_submitted(self, _event: Input.Submitted) -> None:
        """Goes on where nothing is changed by it, else to the next field or button."""
        if self._question.enters:
            self.dismiss(self.typed())
        else:
            self.focus_next()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """The answer."""
        self.dismiss(self.typed() if event.button.id == "agree" else None)

    def action_leave(self) -> None:
        """No."""
        self.dismiss(None)

    def key_left(self) -> None:
        """From button to button."""
        if isinstance(self.focused, Button):
            self.focus_previous()

    def key_right(self) -> None:
        """From button to button."""
        if isinstance(self.focused, Button):
            self.focus_next()

    def _allow(self) -> None:
        typed = self.typed()
        right = all(each.agrees(typed[each.name]) for each in self._question.fields)
        for button in self.query("#agree").results(Button):
            button.disabled = not right

    def _command(self) -> str:
        if self._question.command is None:
            return ""
        typed = (
            self.typed() if self.is_mounted else {each.name: "" for each in self._question.fields}
        )
        return self._question.command(typed)
