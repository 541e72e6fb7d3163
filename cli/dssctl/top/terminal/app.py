"""The dashboard as a Textual application.

Invariant: the terminal shows the sheet of the view; it is painted at most ten times a second for
items, and at once for a key. It changes nothing in the daemon except what a person agreed to in a
dialog.
"""

import asyncio
import os
from collections.abc import Callable
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.suggester import SuggestFromList
from textual.widgets import Input
from textual.worker import WorkerFailed

from dss_core.errors import ExitCode
from dssctl.top.feed.source import Source
from dssctl.top.limits import FRAME_S
from dssctl.top.model.answers import Answer
from dssctl.top.model.picture import Picture, Told, step
from dssctl.top.model.places import Place
from dssctl.top.model.wanted import EVERYTHING
from dssctl.top.stage.actions import Action, Spot, action_of
from dssctl.top.stage.help import ActionRow
from dssctl.top.stage.keys import DOES
from dssctl.top.stage.moves import (
    MOVES,
    chosen,
    filtered,
    seen_by,
    sorted_by,
    started_at,
    tab_chosen,
)
from dssctl.top.stage.places_named import QUITS, names, place_named
from dssctl.top.stage.sheet import Sheet, sheet
from dssctl.top.stage.view import Size, View, looked
from dssctl.top.terminal.canvas import Canvas
from dssctl.top.terminal.prompt import Prompt

if TYPE_CHECKING:
    from dssctl.top.feed.recording import Recorder
    from dssctl.top.feed.replay import Replayed

LOOK_S = 2.0
"""The pause between two questions of an open screen, for what no watch reports."""


FRAME_REST = 3
"""After a frame there is a pause of so many times as long as it took."""

NOTICE_S = 6.0
"""How long a notice stays at the bottom: long enough to read two lines."""


THEMES = {"dark": "textual-dark", "light": "textual-light"}


class Dashboard(App[None]):
    """Shows a source, and takes keys."""

    ENABLE_COMMAND_PALETTE = False
    TITLE = "dssctl top"
    CSS = """
    Screen { layers: sheet prompt; }
    #sheet { layer: sheet; }
    #prompt {
        layer: prompt; dock: bottom; display: none; height: 1; border: none; padding: 0 1;
        offset: 0 -1; background: $boost;
    }
    #prompt.-open { display: block; }
    Dialog Button, Dialog Button:disabled, Dialog Button.-active { border: none !important; }
    """
    BINDINGS: ClassVar = [
        Binding("ctrl+c", "interrupt", "Quit", priority=True),
        Binding("ctrl+z", "suspend_process", "Suspend", priority=True),
    ]

    def __init__(
        self,
        view: View,
        source: Source,
        *,
        theme: str = "dark",
        recorder: "Recorder | None" = None,
        replay: "Replayed | None" = None,
    ) -> None:
        # Without colours, keep the terminal's own, instead of shades of grey.
        super().__init__(ansi_color=True if "NO_COLOR" in os.environ else None)
        self.view = view
        self.theme = THEMES[theme]
        self.failure: BaseException | None = None
        """The error that ended it, if any."""
        self.lines_noted: list[str] = []
        """Command lines that were asked for, or whose change was applied."""
        self._source = source
        self._recorder = recorder
        self._replay = replay
        """The source, if it is a recording."""
        self._dirty = False
        self._next_frame_s = 0.0
        self._sheet: Sheet | None = None
        self._prompting = ""
        self._before_prompt = EVERYTHING
        self._asked_for = asyncio.Event()

    def _handle_exception(self, error: Exception) -> None:
        """Keep the error: `run` raises it once the terminal is restored."""
        self.failure = error.error if isinstance(error, WorkerFailed) else error
        super()._handle_exception(error)

    def _fatal_error(self) -> None:
        """Leave, without the traceback that Textual would print."""
        self._close_messages_no_wait()

    def compose(self) -> ComposeResult:
        """All of it is drawn on one canvas; the prompt lies over its last lines."""
        yield Canvas(id="sheet")
        yield Prompt(id="prompt", select_on_focus=False)

    def on_mount(self) -> None:
        """Paint the first picture before the daemon is asked, which takes a moment."""
        self.set_interval(FRAME_S, self._frame, name="top frames")
        # Back from the shell: nothing that was drawn is left.
        self.app_resume_signal.subscribe(self, lambda _: self.refresh(layout=True))
        self.call_after_refresh(self._begin)

    def _begin(self) -> None:
        self.run_worker(self._source.run(self.tell), name="top feed")
        self.run_worker(self._look(), name="top questions")

    def on_resize(self, event: events.Resize) -> None:
        """Draw everything anew, in the new size."""
        self.view = looked(replace(self.view, size=Size(event.size)))
        self._paint()

    def tell(self, told: Told) -> None:
        """Take an item; it is painted with the next frame."""
        self.view = replace(self.view, picture=step(self.view.picture, told))
        self._dirty = True
        if self._recorder is not None:
            self._record(self._recorder, told)

    def begin_anew(self) -> None:
        """Forget all items."""
        self.view = replace(self.view, picture=Picture(), held=None)

    def _record(self, recorder: "Recorder", told: Told) -> None:
        recorder.write(told)
        if recorder.failure:
            self._recorder = None
            self.view = replace(self.view, badge=self.view.badge._replace(recording=False))
            self._notice(recorder.failure)

    def _frame(self) -> None:
        if self._replay is not None:
            self._replay.frozen = self.view.held is not None
            badge = self.view.badge._replace(replayed=self._replay.where)
            self._dirty |= badge != self.view.badge
            self.view = replace(self.view, badge=badge)
        began_s = perf_counter()
        if self._dirty and began_s >= self._next_frame_s:
            self._dirty = False
            self.view = looked(self.view)
            self._paint()
            self._next_frame_s = began_s + (perf_counter() - began_s) * (1 + FRAME_REST)

    def _paint(self) -> None:
        self._sheet = sheet(self.view)
        at = self._sheet.cursor
        mark = None if at is None else (at, self._sheet.cursor_from, self._sheet.cursor_to)
        # The canvas of the default screen, whatever lies over it.
        for canvas in self.screen_stack[0].query("#sheet").results(Canvas):
            canvas.show(self._sheet.lines, mark)

    def _see(self, view: View) -> None:
        """Show another view, because of a key: paint it at once."""
        asks = (view.here.place, view.here.tab) != (self.view.here.place, self.view.here.tab)
        self.view = view
        if asks:
            self._asked_for.set()
        self._paint()

    async def _look(self) -> None:
        """Ask the question of the present place: at once, and from time to time."""
        while True:
            self._asked_for.clear()
            question, place = self.view.tab.question, self.view.here.place
            if question is not None and self.view.held is None:
                answer = await self._source.answer(place, question, self.view.picture)
                self._answered(answer)
            try:
                async with asyncio.timeout(LOOK_S):
                    await self._asked_for.wait()
            except TimeoutError:
                continue  # the place is the same: the same question again

    def _answered(self, answer: Answer) -> None:
        if answer.place == self.view.here.place:
            self.view = replace(self.view, answer=answer)
            self._dirty = True

    # Keys.

    def on_key(self, event: events.Key) -> None:
        """Keys that no dialog and no prompt took."""
        if len(self.screen_stack) > 1:
            return
        if self._prompting:
            # Typed faster than the prompt could take the focus.
            self.query_one("#prompt", Prompt).take(event)
        elif not self.take(event.key):
            return
        event.stop()
        event.prevent_default()

    def take(self, key: str) -> bool:
        """Carry out a key; returns whether it does anything."""
        if key.isdecimal() and len(key) == 1:
            self._see(tab_chosen(self.view, int(key) - 1))
            return True
        does = DOES.get(key, "")
        if does in MOVES:
            self._move(does)
        elif does:
            self._SPECIAL[does](self)
        else:
            action = action_of(key, self._spot)
            if action is None:
                return False
            self._start(action)
        return True

    def _move(self, does: str) -> None:
        spot = self.view.chosen
        if does == "open" and spot is not None and isinstance(spot.row, ActionRow):
            about, action = spot.row
            self._see(MOVES["back"](self.view))
            self._start(action, about)
            return
        if does == "actions" and self.view.badge.read_only:
            self._notice("this dashboard is read-only")
            return
        self._see(MOVES[does](self.view))

    @property
    def _spot(self) -> Spot | None:
        """The row that an action is about."""
        if self.view.here.place.noun == "actions":
            return self.view.spot
        return self.view.chosen

    def _command(self) -> None:
        self._prompt(":", "", SuggestFromList(names(), case_sensitive=False))

    def _filter(self) -> None:
        self._before_prompt = self.view.here.wanted
        self._prompt("/", self._before_prompt.text, None)

    def _prompt(self, sign: str, value: str, suggester: SuggestFromList | None) -> None:
        prompt = self.query_one("#prompt", Prompt)
        self._prompting = sign
        prompt.suggester = suggester
        prompt.placeholder = (
            "a screen: groups, topics, group NAME, ..."
            if sign == ":"
            else ("words, !word, lag>1000, state=idle")
        )
        prompt.value = value
        prompt.cursor_position = len(value)
        prompt.remove_class("-left").add_class("-open")
        prompt.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter while the text is typed."""
        if self._prompting == "/" and event.input.id == "prompt":
            self._see(filtered(self.view, event.value))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Carry out the typed text, unless the prompt was left."""
        if event.input.id != "prompt" or not self._prompting:
            return
        sign, self._prompting = self._prompting, ""
        left = event.input.has_class("-left")
        event.input.remove_class("-open")
        self.query_one("#sheet", Canvas).focus()
        if left:
            if sign == "/":
                self._see(seen_by(self.view, replace(self.view.here, wanted=self._before_prompt)))
        elif sign == ":":
            self._go(event.value)

    def _go(self, written: str) -> None:
        if written.strip().lower() in QUITS:
            self.exit()
            return
        if not written.strip():
            return
        named = place_named(written, self.view.seen)
        if isinstance(named, Place):
            self._see(started_at(self.view, named))
        else:
            self._notice(named)

    def _notice(self, text: str) -> None:
        self._see(replace(self.view, notice=text))
        self.set_timer(NOTICE_S, lambda: self._silence(text), name="top notice")

    def _silence(self, text: str) -> None:
        if self.view.notice == text:
            self._see(replace(self.view, notice=""))

    def _show_command_line(self) -> None:
        written = self.view.tab.command(self.view.here.place)
        self._note(written)
        self._notice(written)

    def _note(self, written: str) -> None:
        if written and written not in self.lines_noted:
            self.lines_noted.append(written)

    def _copy(self) -> None:
        spot = self.view.chosen
        text = (
            spot.key
            if spot is not None and spot.key
            else self.view.tab.command(self.view.here.place)
        )
        self.copy_to_clipboard(text)
        self._notice(f"copied: {text}")

    def _turn_theme(self) -> None:
        self.theme = THEMES["light" if self.theme == THEMES["dark"] else "dark"]

    def _jump(self, direction: int) -> None:
        if self._replay is not None:
            self._replay.jump(self.tell, direction)
            self._frame()

    def _hasten(self, factor: float) -> None:
        if self._replay is not None:
            self._replay.hasten(factor)
            self._frame()

    def action_interrupt(self) -> None:
        """Ctrl-C."""
        self.exit(return_code=ExitCode.INTERRUPTED)

    _SPECIAL: ClassVar[dict[str, Callable[["Dashboard"], None]]] = {
        "command": _command,
        "filter": _filter,
        "command_line": _show_command_line,
        "copy": _copy,
        "theme": _turn_theme,
        "quit": lambda self: self.exit(),
        "interrupt": action_interrupt,
        "suspend": App.action_suspend_process,
        "jump_back": lambda self: self._jump(-1),
        "jump_on": lambda self: self._jump(1),
        "faster": lambda self: self._hasten(2),
        "slower": lambda self: self._hasten(0.5),
    }

    # The mouse.

    def on_click(self, event: events.Click) -> None:
        """Choose a row, or open it if it is chosen; sort by a header."""
        drawn = self._sheet
        if drawn is None or len(self.screen_stack) > 1 or self._prompting:
            return
        if event.y == drawn.headers:
            column = drawn.column_at(event.x)
            if column is not None:
                self._see(sorted_by(self.view, column.name))
        elif 0 <= event.y - drawn.rows_from < drawn.rows and event.x < drawn.cursor_to:
            self._see(chosen(self.view, self.view.here.first + event.y - drawn.rows_from))
            if event.chain > 1:
                self._move("open")

    def on_mouse_scroll_down(self) -> None:
        """A row down."""
        self._see(MOVES["down"](self.view))

    def on_mouse_scroll_up(self) -> None:
        """A row up."""
        self._see(MOVES["up"](self.view))

    # Changes.

    def _start(self, action: Action, spot: Spot | None = None) -> None:
        spot = spot or self._spot
        if spot is None:
            return
        if self.view.badge.read_only:
            self._notice("this dashboard is read-only")
            return
        self.run_worker(
            self._change(action, spot), name="top change", group="change", exclusive=True
        )

    async def _change(self, action: Action, spot: Spot) -> None:
        # Dialogs are loaded when they are needed: the first paint does not wait for them.
        from dssctl.top.terminal.changing import Changing

        made = await Changing(self._source, self.view, self.push_screen_wait).made(action, spot)
        if made is None:
            self._notice("cancelled")
            return
        self._note(made.line)
        self._notice(made.notice)
