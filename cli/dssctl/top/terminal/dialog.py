"""Questions to a person: what a change needs to know, and whether to make it.

Invariant: Cancel is chosen when a question appears, Escape is Cancel, and the enter key in a field
never agrees to a change. What has to be typed to agree has to be typed exactly. What stands against
an answer is shown where it was given, and what was typed stays.
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
    """What stands there already; typing replaces it."""
    must_be: str = ""
    """Nothing else agrees; anything does where it is empty."""
    needed: bool = False
    """Whether something must be typed."""

    def agrees(self, typed: str) -> bool:
        """Whether what was typed will do."""
        return typed == self.must_be if self.must_be else bool(typed) or not self.needed

    @property
    def missing(self) -> str:
        """What is said where it does not."""
        return self.label if self.must_be else f"nothing is typed: {self.label}"


@dataclass(frozen=True, slots=True)
class Question:
    """What a person is asked."""

    title: str
    lines: tuple[Line, ...] = ()
    fields: tuple[Asked, ...] = ()
    agree: str = ""
    """On the button; without one there is nothing to agree to."""
    done: Callable[[dict[str, str]], Awaitable[Any]] | None = None
    """Of what was typed, once it was agreed to: gives the answer, or raises what stands against."""
    command: Callable[[Mapping[str, str]], str] | None = None
    """The command line that does the same, of what was typed."""
    enters: bool = False
    """Whether the enter key in a field goes on: where nothing is changed by it."""


class Dialog(ModalScreen[Any]):
    """Asks a question; gives what was made of its answer, or None."""

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
        """For the daemon: until it has answered nothing else is done here."""

    def compose(self) -> ComposeResult:
        """Text, fields, what stands against the answer, the command line, buttons, keys."""
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
        """Cancel is chosen, unless there is only something to be typed."""
        for canvas in self.query(Canvas):
            canvas.can_focus = False
        self._fill("#text", self._question.lines or (line(""),))
        first = f"#{self._question.fields[0].name}" if self._question.enters else "#cancel"
        self.query_one(first).focus()
        self._allow()

    def typed(self) -> dict[str, str]:
        """What stands in the fields."""
        return {
            field.name: self.query_one(f"#{field.name}", Input).value.strip()
            for field in self._question.fields
        }

    def on_descendant_focus(self) -> None:
        """The keys are those of what is chosen."""
        self._fill("#keys", (hints(self._keys(), self.size.width, self._glyphs), EMPTY))

    def on_resize(self) -> None:
        """In the new size, with the buttons on the terminal."""
        self.on_descendant_focus()
        self.query_one("#text").styles.height = max(1, len(self._question.lines))
        self.call_after_refresh(self._make_room)

    def on_key(self, event: events.Key) -> None:
        """What was typed before the field took the focus."""
        field = self.focused
        if isinstance(field, Input) and event.character is not None and event.is_printable:
            event.stop()
            field.insert_text_at_cursor(event.character)

    def on_input_changed(self, _event: Input.Changed) -> None:
        """The command line says what is typed; the button can be pressed once all is right."""
        self.query_one("#command", Label).update(self._command())
        if not self._waits:
            self.query_one("#failure").display = False
        self._allow()

    def on_input_submitted(self, _event: Input.Submitted) -> None:
        """Goes on where nothing is changed by it, else to the button; or says what is missing."""
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
        """The answer."""
        if event.button.id == "agree":
            self._agree()
        else:
            self.action_leave()

    def action_leave(self) -> None:
        """No."""
        if not self._waits:
            self.dismiss(None)

    def key_left(self) -> None:
        """From button to button."""
        if isinstance(self.focused, Button):
            self.query_one("#cancel").focus()

    def key_right(self) -> None:
        """From button to button."""
        if isinstance(self.focused, Button):
            self.query("#agree").focus()

    def _agree(self) -> None:
        if not self._waits:
            self._waits = True
            self._say([line(said("asking the daemon", "dim"))])
            self.run_worker(self._answered(), name="top answer")

    async def _answered(self) -> None:
        """What stands against it is shown here, with what was typed."""
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
        """Less of the text, where a small terminal has no room for what is said besides."""
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
        """What keys do now; the first says what Enter does."""
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
    """What stands against a change, and what helps."""
    told = f"{failure.code}: {failure.message}"
    lines = [line(said(each, "bad")) for each in wrapped(escaped(told), width)]
    lines += [line(said(each)) for each in wrapped(escaped(failure.hint_text or ""), width) if each]
    if not failure.definite:
        lines.append(line("Whether it was applied is not known: see :operations"))
    return lines
