"""Questions to a person: the details of a change, and whether to make it.

Invariant: Cancel is chosen when a question appears, Escape cancels, and the enter key in a field
never agrees to a change. A text that confirms has to be typed exactly. An answer that is refused
stays in its field, with the reason beside it.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Label

from dss_core.errors import DssError
from dssctl.output.escape import escaped
from dssctl.top.paint.frame import hints
from dssctl.top.paint.glyphs import ASCII, FULL
from dssctl.top.paint.spans import EMPTY, Line, Span, line, said, wrapped
from dssctl.top.terminal.canvas import Canvas


@dataclass(frozen=True, slots=True)
class Asked:
    """A field of a question."""

    name: str
    label: str
    value: str = ""
    """The text that is in the field at first; typing replaces it."""
    must_be: str = ""
    """The only text that agrees; if it is empty, any text does."""
    needed: bool = False
    """Whether something must be typed."""

    def agrees(self, typed: str) -> bool:
        """Whether the typed text agrees."""
        return typed == self.must_be if self.must_be else bool(typed) or not self.needed

    @property
    def missing(self) -> str:
        """The message if it does not."""
        return self.label if self.must_be else f"nothing is typed: {self.label}"


@dataclass(frozen=True, slots=True)
class Question:
    """A question to a person."""

    title: str
    lines: tuple[Line, ...] = ()
    fields: tuple[Asked, ...] = ()
    agree: str = ""
    """The text of the button; without it there is nothing to agree to."""
    done: Callable[[dict[str, str]], Awaitable[Any]] | None = None
    """Called with the typed texts once they are agreed to: returns the answer, or raises why
    not."""
    command: Callable[[Mapping[str, str]], str] | None = None
    """The command line that does the same, from the typed texts."""
    enters: bool = False
    """Whether the enter key in a field goes on: only if that changes nothing."""


class Dialog(ModalScreen[Any]):
    """Asks a question; returns what its answer gave, or None."""

    BINDINGS: ClassVar = [("escape", "leave", "Cancel")]
    DEFAULT_CSS = """
    Dialog { align: center middle; background: $background 60%; }
    Dialog > Vertical {
        width: 90%; max-width: 110; height: auto; max-height: 100%;
        border: round $primary; padding: 0 1; background: $surface;
        overflow-y: auto; scrollbar-size-vertical: 1;
    }
    Dialog Canvas { height: auto; background: $surface; }
    Dialog Input { background: $boost; }
    Dialog Input:focus { background: $primary 30%; }
    Dialog .field { height: auto; }
    Dialog .field Label { width: auto; max-width: 60%; padding: 0 1 0 0; }
    Dialog .field Input { width: 1fr; }
    Dialog #failure { display: none; }
    Dialog #command { color: $foreground 70%; height: auto; }
    Dialog #buttons { height: auto; align: center middle; }
    Dialog Button { margin: 0 1; min-width: 12; }
    Dialog #keys { dock: bottom; height: 2; background: $background; }
    Dialog.-ascii > Vertical { border: ascii $primary; }
    """

    def __init__(self, question: Question, *, ascii_only: bool = False) -> None:
        super().__init__(classes="-ascii" if ascii_only else None)
        self._question = question
        self._glyphs = ASCII if ascii_only else FULL
        self._waits = False
        """Waiting for the daemon: until it has answered, nothing else is done here."""

    def compose(self) -> ComposeResult:
        """Text, fields, the refusal, the command line, buttons, keys."""
        question = self._question
        with Vertical(id="frame") as frame:
            frame.border_title = escaped(question.title).replace("[", "\\[")
            yield Canvas(id="text")
            for field in question.fields:
                with Horizontal(classes="field"):
                    yield Label(field.label, markup=False)
                    yield Input(field.value, id=field.name, compact=True)
            yield Canvas(id="failure")
            yield Label(self._command(), id="command", markup=False)
            with Horizontal(id="buttons"):
                yield Button("Cancel" if question.agree else "Close", id="cancel", compact=True)
                if question.agree:
                    yield Button(question.agree, id="agree", variant="warning", compact=True)
        yield Canvas(id="keys")

    def on_mount(self) -> None:
        """Choose Cancel, unless there is only something to type."""
        for canvas in self.query(Canvas):
            canvas.can_focus = False
        self._fill("#text", self._question.lines or (line(""),))
        first = f"#{self._question.fields[0].name}" if self._question.enters else "#cancel"
        self.query_one(first).focus()
        self._allow()

    def typed(self) -> dict[str, str]:
        """The texts in the fields."""
        return {
            field.name: self.query_one(f"#{field.name}", Input).value.strip()
            for field in self._question.fields
        }

    def on_descendant_focus(self) -> None:
        """Show the keys of what is chosen."""
        self._fill("#keys", (hints(self._keys(), self.size.width, self._glyphs), EMPTY))

    def on_resize(self) -> None:
        """Lay out in the new size, with the buttons visible."""
        self.on_descendant_focus()
        self.query_one("#text").styles.height = max(1, len(self._question.lines))
        self.call_after_refresh(self._make_room)

    def on_key(self, event: events.Key) -> None:
        """Take keys that were typed before the field took the focus."""
        field = self.focused
        if isinstance(field, Input) and event.character is not None and event.is_printable:
            event.stop()
            field.insert_text_at_cursor(event.character)

    def on_input_changed(self, _event: Input.Changed) -> None:
        """Update the command line; enable the button once all fields agree."""
        self.query_one("#command", Label).update(self._command())
        if not self._waits:
            self.query_one("#failure").display = False
        self._allow()

    def on_input_submitted(self, _event: Input.Submitted) -> None:
        """Go on if that changes nothing, else move to the button; or say what is missing."""
        typed = self.typed()
        for field in self._question.fields:
            if not field.agrees(typed[field.name]):
                self.query_one(f"#{field.name}").focus()
                told = wrapped(escaped(field.missing), self.query_one("#frame").size.width)
                self._say([line(Span(each, "warn")) for each in told])
                return
        if self._question.enters:
            self._agree()
        else:
            self.query_one("#agree").focus()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Take the answer."""
        if event.button.id == "agree":
            self._agree()
        else:
            self.action_leave()

    def action_leave(self) -> None:
        """Cancel."""
        if not self._waits:
            self.dismiss(None)

    def key_left(self) -> None:
        """Move from button to button."""
        if isinstance(self.focused, Button):
            self.query_one("#cancel").focus()

    def key_right(self) -> None:
        """Move from button to button."""
        if isinstance(self.focused, Button):
            self.query("#agree").focus()

    def _agree(self) -> None:
        if not self._waits:
            self._waits = True
            self._say([line(said("asking the daemon", "dim"))])
            self.run_worker(self._answered(), name="top answer")

    async def _answered(self) -> None:
        """Show a refusal here, and keep what was typed."""
        done, typed = self._question.done, self.typed()
        try:
            self.dismiss(typed if done is None else await done(typed))
        except DssError as failure:
            self._say(failure_lines(failure, self.query_one("#frame").size.width))
            if self._question.enters:
                self.query_one(f"#{self._question.fields[0].name}").focus()
        finally:
            self._waits = False

    def _say(self, lines: Sequence[Line]) -> None:
        failure = self.query_one("#failure", Canvas)
        failure.display = True
        self._fill("#failure", lines)
        self.call_after_refresh(self._make_room)

    def _make_room(self) -> None:
        """Shorten the text if a small terminal has no room for the rest."""
        frame, text = self.query_one("#frame"), self.query_one("#text")
        over = frame.virtual_size.height - frame.size.height
        if over > 0:
            text.styles.height = max(1, text.size.height - over)
        if self.focused is not None:
            self.call_after_refresh(self.focused.scroll_visible, animate=False)

    def _fill(self, name: str, lines: Sequence[Line]) -> None:
        canvas = self.query_one(name, Canvas)
        canvas.styles.height = len(lines)
        canvas.show(tuple(lines))

    def _allow(self) -> None:
        typed = self.typed()
        right = all(each.agrees(typed[each.name]) for each in self._question.fields)
        for button in self.query("#agree").results(Button):
            button.disabled = not right

    def _keys(self) -> list[tuple[str, str]]:
        """The present effects of keys; the first is that of Enter."""
        question, focused = self._question, self.focused
        no = "cancel" if question.agree else "close"
        if isinstance(focused, Button):
            does = question.agree if focused.id == "agree" else no
            others = [("left right", "the other button")] if question.agree else []
        else:
            does = question.agree if question.enters else "to the button"
            others = []
        more = [("tab", "next")] if question.fields else []
        return [("enter", does), *others, *more, ("esc", no), ("ctrl+q", "quit")]

    def _command(self) -> str:
        if self._question.command is None:
            return ""
        typed = (
            self.typed() if self.is_mounted else {each.name: "" for each in self._question.fields}
        )
        return self._question.command(typed)


def failure_lines(failure: DssError, width: int) -> list[Line]:
    """Why a change was refused, and what helps."""
    told = f"{failure.code}: {failure.message}"
    lines = [line(said(each, "bad")) for each in wrapped(escaped(told), width)]
    lines += [line(said(each)) for each in wrapped(escaped(failure.hint_text or ""), width) if each]
    if not failure.definite:
        lines.append(line("Whether it was applied is not known: see :operations"))
    return lines
