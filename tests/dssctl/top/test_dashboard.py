"""The dashboard with its keys, without a terminal: the shell around view and sheet."""

import asyncio
from itertools import count
from pathlib import Path

import pytest
from textual import events
from textual.widgets import Button, Input

from dss_client.changes import MoveCursors, PauseGroup, RemoveGroup, Undo
from dss_core.errors import GroupNotFound
from dssctl.top.feed.recording import Recorder
from dssctl.top.feed.replay import Replayed
from dssctl.top.feed.source import Tell
from dssctl.top.model.answers import Answer
from dssctl.top.model.places import Place
from dssctl.top.paint.frame import Badge
from dssctl.top.paint.spans import Span, text_of
from dssctl.top.stage.view import View
from dssctl.top.terminal.app import Dashboard
from dssctl.top.terminal.canvas import Canvas, changed
from dssctl.top.terminal.dialog import Dialog
from support.dashboard_items import PAYMENTS, after, busy
from support.played_dashboard import Played, played


@pytest.fixture
def source() -> Played:
    return Played(busy(8))


async def test_a_screen_is_reached_by_its_name(source: Played) -> None:
    async with played(source) as (dashboard, pilot):
        await pilot.press("colon", *"topics", "enter")
        assert dashboard.view.here.place == Place("topics")
        await pilot.press("colon", *"group orders-index", "enter")
        assert dashboard.view.here.place.group == "orders-index@orders/#"
        await pilot.press("colon", *"gruops", "enter")
        assert "did you mean groups" in dashboard.view.notice
        await pilot.press("colon", *"q", "enter")
    assert dashboard.return_code == 0


async def test_a_filter_is_seen_while_it_is_typed_and_escape_takes_it_back(source: Played) -> None:
    async with played(source) as (dashboard, pilot):
        await pilot.press("slash", *"audit")
        assert dashboard.view.found.keys == ("audit-sink@orders/#",)
        await pilot.press("escape")
        assert len(dashboard.view.found.keys) == 6
        await pilot.press("slash", *"pay", "enter")
        assert len(dashboard.view.found.keys) == 2


async def test_what_is_typed_before_the_prompt_has_the_focus_is_for_the_prompt(
    source: Played,
) -> None:
    async with played(source) as (dashboard, pilot):
        prompt = dashboard.query_one("#prompt", Input)
        dashboard.take("colon")
        dashboard.set_focus(dashboard.query_one("#sheet"))
        await pilot.press(*"groupX", "backspace", "s")
        assert prompt.value == "groups"
        dashboard.set_focus(dashboard.query_one("#sheet"))
        await pilot.press("enter")
        assert dashboard.view.here.place == Place("groups")


async def test_a_change_is_planned_shown_with_cancel_chosen_and_not_made_by_enter(
    source: Played,
) -> None:
    async with played(source) as (dashboard, pilot):
        await pilot.press("P")
        assert isinstance(dashboard.screen, Dialog)
        assert isinstance(dashboard.focused, Button)
        assert dashboard.focused.id == "cancel"
        await pilot.press("enter")
        assert not isinstance(dashboard.screen, Dialog)
    assert source.planned == [PauseGroup(PAYMENTS)]
    assert source.applied == []


async def test_a_change_that_is_agreed_to_is_applied_with_its_reason_and_its_line_noted(
    source: Played,
) -> None:
    async with played(source, (160, 45)) as (dashboard, pilot):
        await pilot.press("W", *["backspace"] * 4, *"earliest", "enter")
        await pilot.press("shift+tab", *"TKT 7", "enter")
        assert isinstance(dashboard.screen, Dialog), "the enter key in a field agrees to nothing"
        await pilot.press("right", "enter")
        assert "operation 9" in dashboard.view.notice
        assert "running" not in dashboard.view.notice, "the watch tells its state, and newer ones"
    change = MoveCursors(PAYMENTS, "rewind", to="earliest")
    assert source.applied == [(change, "TKT 7")]
    line = f"dssctl offsets rewind --to earliest --reason 'TKT 7' '{PAYMENTS}'"
    assert dashboard.lines_noted == [line]


async def test_what_nothing_brings_back_wants_its_name_typed(source: Played) -> None:
    async with played(source) as (dashboard, pilot):
        await pilot.press("X")
        agree = dashboard.screen.query_one("#agree", Button)
        assert agree.disabled
        await pilot.press("shift+tab", *"payments-settl")
        assert agree.disabled
        await pilot.press("e")
        assert not agree.disabled
        await pilot.click("#agree")
        await pilot.pause()
    assert source.applied == [(RemoveGroup(PAYMENTS), "")]


async def test_escape_leaves_every_question(source: Played) -> None:
    async with played(source) as (dashboard, pilot):
        for key in ("W", "P", "X"):
            await pilot.press(key, "escape")
            assert not isinstance(dashboard.screen, Dialog)
    assert source.applied == []


async def test_what_stands_against_a_change_is_told_with_what_to_do(source: Played) -> None:
    source.refusal = GroupNotFound(group="payments-settle")
    async with played(source) as (dashboard, pilot):
        await pilot.press("R")
        assert isinstance(dashboard.screen, Dialog)
        assert len(dashboard.screen.query("#agree")) == 0
        await pilot.press("enter")
        assert not isinstance(dashboard.screen, Dialog)


async def test_a_plan_without_anything_to_do_is_not_applied(source: Played) -> None:
    source.nothing_to_do = True
    async with played(source) as (dashboard, pilot):
        await pilot.press("R")
        assert len(dashboard.screen.query("#agree")) == 0
        await pilot.press("enter")
    assert source.applied == []


async def test_the_menu_of_actions_leads_to_the_same_question(source: Played) -> None:
    async with played(source) as (dashboard, pilot):
        await pilot.press("colon", *"operations", "enter", "a", "enter")
        assert isinstance(dashboard.screen, Dialog)
    assert source.planned == [Undo(2)]


async def test_what_is_typed_replaces_what_a_field_begins_with_and_has_room(
    source: Played,
) -> None:
    async with played(source) as (dashboard, pilot):
        await pilot.press("W", *"=2000")
        field = dashboard.screen.query_one("#target", Input)
        assert field.value == "=2000"
        assert field.size.width >= 40


async def test_what_stands_against_an_answer_is_told_beside_it_and_the_answer_stays(
    source: Played,
) -> None:
    source.refusal = refusal = GroupNotFound(group="payments-settle")
    async with played(source) as (dashboard, pilot):
        await pilot.press("W", *"=20", "enter")
        assert refusal.code in said_in(dashboard, "#failure")
        assert isinstance(dashboard.focused, Input)
        assert dashboard.focused.value == "=20"
        source.refusal = None
        await pilot.press("enter")
        source.refusal = refusal
        await pilot.press("shift+tab", "7", "enter", "enter")
        assert refusal.code in said_in(dashboard, "#failure")
        assert dashboard.screen.query_one("#reason", Input).value == "7"
        source.refusal = None
        agree = dashboard.screen.query_one("#agree", Button)
        while agree.has_class("-active"):  # a button takes no second press at once
            await pilot.pause()
        await pilot.press("enter")
        await pilot.pause()
        assert not isinstance(dashboard.screen, Dialog)
    assert source.applied == [(MoveCursors(PAYMENTS, "rewind", to="=20"), "7")]


async def test_enter_in_a_field_says_what_is_missing(source: Played) -> None:
    async with played(source) as (dashboard, pilot):
        await pilot.press("W", "backspace", "enter")
        assert "nothing is typed: Back to" in said_in(dashboard, "#failure")
        await pilot.press("escape", "X", "shift+tab", "shift+tab", "enter")
        assert isinstance(dashboard.focused, Input)
        assert dashboard.focused.id == "typed"
        assert "Type payments-settle to agree" in said_in(dashboard, "#failure")


async def test_a_dialog_has_its_own_keys_at_the_foot_and_the_first_is_what_enter_does(
    source: Played,
) -> None:
    async with played(source) as (dashboard, pilot):
        await pilot.press("P")
        assert said_in(dashboard, "#keys").startswith(" enter cancel")
        await pilot.press("right")
        assert said_in(dashboard, "#keys").startswith(" enter Run")
        await pilot.press("right", "right", "left")
        assert said_in(dashboard, "#keys").startswith(" enter cancel")
        await pilot.press("enter")
        assert dashboard.view.notice == "cancelled"
        await pilot.press("W")
        assert said_in(dashboard, "#keys").startswith(" enter Plan")
        assert dashboard.screen.query_one("#keys").region.bottom == 24


async def test_what_is_typed_before_a_field_has_the_focus_is_for_the_field(source: Played) -> None:
    async with played(source) as (dashboard, pilot):
        await pilot.press("P")
        cancel, reason = dashboard.focused, dashboard.screen.query_one("#reason", Input)
        assert isinstance(cancel, Button)
        reason.focus()
        cancel._forward_event(events.Key("x", "x"))
        await pilot.pause()
        assert reason.value == "x"


async def test_the_buttons_of_a_question_stay_on_a_terminal_that_becomes_small(
    source: Played,
) -> None:
    async with played(source) as (dashboard, pilot):
        await pilot.press("P")
        for size in ((40, 12), (80, 24), (40, 12)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            buttons = dashboard.screen.query_one("#buttons").region
            assert buttons.height == 1
            assert buttons.bottom < size[1] - 2
        await pilot.press("escape", "X")  # fields that leave no room for the text
        dashboard.screen.query_one("#text").styles.height = 20
        await pilot.resize_terminal(40, 13)
        await pilot.pause()
        assert dashboard.screen.query_one("#cancel").region.bottom < 11


async def test_a_schedule_is_triggered_once_a_person_agrees(source: Played) -> None:
    async with played(source) as (dashboard, pilot):
        await pilot.press("colon", *"cron", "enter", "T")
        assert "lag" in said_in(dashboard, "#text")
        assert source.triggered == []
        await pilot.press("shift+tab", "7", "enter", "enter")
        assert "run 4 of lag" in dashboard.view.notice
    assert source.triggered == [("lag", "7")]
    assert dashboard.lines_noted == ["dssctl schedules trigger --reason 7 lag"]


def said_in(dashboard: Dashboard, part: str) -> str:
    """What a part of the dialog says."""
    lines = dashboard.screen.query_one(part, Canvas)._lines
    return "\n".join(text_of(each) for each in lines)


async def test_a_read_only_dashboard_changes_nothing(source: Played) -> None:
    async with played(source, badge=Badge("x", read_only=True)) as (dashboard, pilot):
        await pilot.press("P")
        assert dashboard.view.notice == "this dashboard is read-only"
        await pilot.press("a")
        assert dashboard.view.here.place == Place("pulse")
    assert source.planned == []


async def test_a_protected_context_wants_a_reason_and_the_name(source: Played) -> None:
    badge = Badge("x", context="prod", protected=True)
    async with played(source, (160, 45), badge) as (dashboard, pilot):
        assert "prod  PROTECTED" in dashboard.texts[0]
        await pilot.press("P")
        agree = dashboard.screen.query_one("#agree", Button)
        dashboard.screen.query_one("#typed", Input).value = PAYMENTS
        await pilot.pause()
        assert agree.disabled
        dashboard.screen.query_one("#reason", Input).value = "TKT-7"
        await pilot.pause()
        assert not agree.disabled


async def test_the_command_line_of_what_is_seen_is_shown_and_kept_for_the_end(
    source: Played,
) -> None:
    async with played(source) as (dashboard, pilot):
        await pilot.press("colon", *"topics", "enter", "o", "o")
        assert dashboard.view.notice == "dssctl topics ls"
    assert dashboard.lines_noted == ["dssctl topics ls"]


async def test_what_no_watch_tells_is_asked_where_one_is(source: Played) -> None:
    source.answers["out"] = Answer(Place("group"), failure="the daemon is busy")
    async with played(source) as (dashboard, pilot):
        await pilot.press("enter", "3")
        await pilot.pause()
        dashboard.now()
        assert any("the daemon is busy" in line for line in dashboard.texts)


async def test_a_row_is_chosen_by_a_click_and_a_header_sorts(source: Played) -> None:
    async with played(source) as (dashboard, pilot):
        await pilot.press("colon", *"groups", "enter")
        await pilot.click(offset=(5, 7))
        assert dashboard.view.index == 2
        await pilot.click(offset=(3, 4))
        assert dashboard.view.here.ordering is not None
        assert dashboard.view.here.ordering.column == "name"


async def test_ctrl_c_ends_it_with_130(source: Played) -> None:
    async with played(source) as (dashboard, pilot):
        await pilot.press("ctrl+c")
    assert dashboard.return_code == 130


class Mistaken(Played):
    """A source that breaks, once all that runs beside it has begun."""

    async def run(self, tell: Tell) -> None:
        await super().run(tell)
        await asyncio.sleep(0)
        raise KeyError("lag")


def test_a_mistake_of_the_dashboard_ends_it_and_is_kept_for_a_condition(
    capsys: pytest.CaptureFixture[str],
) -> None:
    dashboard = Dashboard(View(Badge("unix:/s")), Mistaken(busy(8)))
    dashboard.run(headless=True)
    assert isinstance(dashboard.failure, KeyError)
    assert dashboard.return_code == 1
    assert "Traceback" not in capsys.readouterr().err


async def test_only_the_cells_that_changed_are_drawn_again(source: Played) -> None:
    async with played(source) as (dashboard, pilot):
        before = dashboard.texts
        canvas = dashboard.query_one("#sheet")
        drawn: list[object] = []
        canvas.refresh = lambda *regions, **_: drawn.extend(regions)  # type: ignore[assignment]
        dashboard._paint()
        assert drawn == []
        await pilot.press("down")
        assert dashboard.texts != before
        assert 0 < len(drawn) <= 6


async def test_a_row_that_is_wider_than_the_terminal_has_become_is_drawn(source: Played) -> None:
    async with played(source) as (dashboard, _pilot):
        canvas = dashboard.query_one("#sheet", Canvas)
        for start, end in ((1, 158), (90, 158)):
            canvas.show(((Span("x" * 160),),), (0, start, end))
            assert canvas.render_line(0).text == "x" * 80


async def test_a_terminal_may_be_made_smaller_and_larger_at_any_time(source: Played) -> None:
    async with played(source, (160, 45)) as (dashboard, pilot):
        for size in ((50, 14), (20, 5), (160, 45), (1, 1), (80, 24)):
            await pilot.resize_terminal(*size)
            dashboard.query_one("#sheet").refresh()
            await pilot.pause()
            assert dashboard.view.size == size
            assert len(dashboard.texts) == size[1]


def test_two_lines_differ_from_their_first_to_their_last_other_span() -> None:
    before = (Span("ab"), Span("cd"), Span("ef"))
    assert changed(before, (Span("ab"), Span("xy"), Span("ef"))) == (2, 4)
    assert changed(before, (Span("ab"), Span("c"), Span("ef"))) == (2, 6)
    assert changed((), before) == (0, 6)


async def test_a_recording_shows_the_same_picture_again(tmp_path: Path) -> None:
    items = busy(20)
    path = str(tmp_path / "r")
    seconds = count(1_000)
    recorder = Recorder(path, lambda: next(seconds) * 1_000)
    dashboard = Dashboard(View(Badge("")), Played(items), recorder=recorder)
    for item in items:
        dashboard.tell(item)
    recorder.close()
    again = Dashboard(View(Badge("")), Played([]))
    replay = Replayed(path, again.begin_anew)
    replay.play(again.tell, 60_000)
    assert again.view.picture == after(items)
    replay.jump(again.tell, -1)
    assert again.view.picture.now_ms == after(items).now_ms
