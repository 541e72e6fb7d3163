"""The lines of a terminal: as many and as wide as it is, and safe to print."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from dss_client import Verdict
from dssctl.top.model.picture import Lost, Picture, Stands, Stood, step
from dssctl.top.model.places import Place
from dssctl.top.paint.frame import Badge
from dssctl.top.paint.glyphs import ASCII
from dssctl.top.paint.spans import text_of, width_of
from dssctl.top.stage.help import HELP
from dssctl.top.stage.moves import MOVES, filtered, gone_to, tab_chosen
from dssctl.top.stage.screens import SCREENS
from dssctl.top.stage.sheet import sheet
from dssctl.top.stage.view import Size, View, looked
from support.dashboard_items import (
    NOW_MS,
    ORDERS,
    PAYMENTS,
    after,
    event,
    grant,
    group,
    member,
    session,
    status,
    stuck,
    update,
)

Viewed = Callable[..., View]
SIZES = ((80, 24), (160, 45), (40, 12), (100, 30), (250, 70), (10, 3))


def texts(view: View) -> list[str]:
    return [text_of(each) for each in sheet(view).lines]


def all_places(view: View) -> list[View]:
    """Every list of every screen."""
    found = []
    for noun in SCREENS:
        there = gone_to(
            view, Place(noun, group=PAYMENTS, stream="payments/0/1", name="2", offset=7)
        )
        found += [tab_chosen(there, tab) for tab in range(len(there.screen.tabs))]
    return found


@pytest.mark.parametrize("size", SIZES)
def test_a_sheet_fills_its_terminal_exactly(size: tuple[int, int], viewed: Viewed) -> None:
    for view in all_places(viewed(size=size)):
        lines = sheet(view).lines
        assert len(lines) == size[1], view.here
        assert {width_of(each) for each in lines} == {size[0]}, view.here


@pytest.mark.parametrize("size", SIZES)
def test_ascii_is_all_that_is_drawn_where_it_was_asked_for(
    size: tuple[int, int], viewed: Viewed
) -> None:
    for view in all_places(viewed(size=size, glyphs=ASCII)):
        assert "".join(texts(view)).isascii(), view.here


def test_what_the_daemon_says_cannot_repaint_the_terminal(viewed: Viewed, picture: Picture) -> None:
    evil = "a\x1b[2J\n\u202eb\x9b"
    named = group(evil, evil, state="stalled", state_reason=evil)
    known = step(picture, update(named, session(evil), event(9, evil, subject=evil, code=evil)))
    for size in ((80, 24), (200, 50)):
        for view in all_places(looked(replace(viewed(size=size), picture=known))):
            for line in texts(view):
                assert line.isprintable(), (view.here, line)


def test_the_chosen_row_is_pointed_at_as_well_as_coloured(viewed: Viewed) -> None:
    drawn = sheet(viewed(Place("groups")))
    assert drawn.cursor is not None
    assert text_of(drawn.lines[drawn.cursor]).startswith("│▶payments-settle")
    assert [text_of(line)[1:2] for line in drawn.lines].count("▶") == 1


def test_a_lost_daemon_is_told_with_since_when_over_the_last_picture(
    viewed: Viewed, picture: Picture
) -> None:
    lost = step(picture, Lost(NOW_MS - 12_000, "No daemon answers."))
    lines = texts(looked(replace(viewed(), picture=lost)))
    assert lines[2].startswith(" ! the daemon is away since 04:06:31Z, for 12s: No daemon answers.")
    assert any("payments-settle" in line for line in lines)


def test_a_frozen_view_still_tells_that_the_daemon_is_away(
    viewed: Viewed, picture: Picture
) -> None:
    lost = step(picture, Lost(NOW_MS, ""))
    frozen = replace(viewed(), held=picture, picture=lost, badge=Badge("x", frozen=True))
    assert "FROZEN" in texts(looked(frozen))[0]
    assert "away since" in texts(looked(frozen))[2]


def test_a_stream_that_does_not_move_is_told_at_the_top_of_its_group_and_in_a_list(
    viewed: Viewed,
) -> None:
    well = after([Stood(status()), update(group("orders-index", lag=22), anew=True)])
    assert "nothing is wrong" in texts(viewed(picture=well))[2]
    group_now = group("orders-index", lag=22, health="problem")
    stands = step(step(well, stuck()), update(group_now))
    view = viewed(Place("groups"), (160, 45), picture=stands)
    assert "1 group stuck: see :stuck" in texts(view)[2]
    assert any("orders-index" in line and " stuck " in line for line in texts(view))
    assert any("state        stuck: orders/0/3: The record" in line for line in texts(view))
    assert MOVES["faults"](view).found.keys == (ORDERS,)
    listed = viewed(Place("stuck"), picture=stands)
    assert any("The record at 2 failed 6 times" in line for line in texts(listed))
    spot = listed.chosen
    assert spot is not None
    assert (spot.group, spot.stream) == (ORDERS, "orders/0/3"), "it can be changed from here"
    assert MOVES["open"](listed).here.place == Place("stream", ORDERS, "orders/0/3")


def test_groups_are_coloured_and_counted_by_the_daemons_verdict(viewed: Viewed) -> None:
    alone = group("ledger", lag=3, borrowers=0, state="idle", health="problem")
    told = after([Stood(status()), update(alone, replace(alone, name="more"), anew=True)])
    view = viewed(Place("groups"), picture=told)
    assert "2 groups stuck: see :stuck" in texts(view)[2]
    assert MOVES["faults"](view).found.keys == ("ledger@orders/#", "more@orders/#")


def test_a_stream_that_does_not_move_and_its_member_are_marked(viewed: Viewed) -> None:
    items = (group("orders-index"), grant(ORDERS, "orders/0/3"), member(ORDERS, "c-03"))
    told = after([Stood(status()), update(*items, member(ORDERS, "c-04"), anew=True), stuck()])
    streams = viewed(Place("group", group=ORDERS), (160, 45), picture=told)
    assert any("orders/0/3" in line and " stuck " in line for line in texts(streams))
    members = tab_chosen(streams, 1)
    assert len(MOVES["faults"](members).found.keys) == 1


def test_what_does_not_move_of_a_group_that_is_not_shown_is_not_told(viewed: Viewed) -> None:
    well = after([Stood(status()), update(group("orders-index"), anew=True)])
    private = step(well, stuck(of="exclusive@orders/#"))
    assert "nothing is wrong" in texts(viewed(picture=private))[2]
    assert "all that has records moves" in "".join(texts(viewed(Place("stuck"), picture=private)))


def test_what_the_daemon_finds_is_told_the_worst_first_and_each_in_part(viewed: Viewed) -> None:
    near = Verdict("attention", "disk.free", "Only 9.0G of 100.0G are free for /var/lib/dssd.", ())
    gone = Verdict("problem", "groups.losing", "Retention of orders took 3 records unread.", ())
    fine = Verdict("healthy", "events.errors", "no other errors in a day", ())
    well = after([Stood(status()), update(group("orders-index"), anew=True)])
    line = texts(viewed(picture=step(well, Stands((), (fine, near, gone)))))[2]
    assert line.index("Retention of orders took") < line.index("Only 9.0G of 100.0G")
    assert "no other errors" not in line


def test_nothing_known_yet_is_said_so() -> None:
    lines = texts(looked(View(Badge("unix:/run/dssd.sock"))))
    assert "waiting for the daemon" in lines[2]
    assert any("waiting for the daemon" in line for line in lines[3:])


def test_a_filter_that_leaves_nothing_is_told_as_the_reason(viewed: Viewed) -> None:
    lines = texts(filtered(viewed(Place("groups")), "zebra"))
    assert any("none of 6 is wanted" in line for line in lines)


def test_columns_give_way_from_the_least_needed_one_on(viewed: Viewed) -> None:
    wide, small, least = (
        text_of(sheet(viewed(Place("groups"), size)).lines[4])
        for size in ((160, 45), (80, 24), (60, 24))
    )
    assert all(header in wide for header in ("IN/S", "ACK/S", "DRAIN", "TREND", "OLDEST"))
    assert "OLDEST" in small
    assert "DRAIN" not in small
    assert "TREND" not in least
    assert "LAG" in least


def test_a_large_terminal_shows_the_chosen_row_beside_the_list(viewed: Viewed) -> None:
    beside = "\n".join(line[107:] for line in texts(viewed(Place("groups"), (160, 45))))
    assert "arriving     2060/s" in beside
    assert "leader epoch 3" in beside


def test_the_heat_map_tells_streams_apart_by_their_signs(viewed: Viewed) -> None:
    lines = texts(viewed(Place("group", group=PAYMENTS)))
    assert any(line.startswith(" payments/0    ▒○·░") for line in lines)
    lines = texts(viewed(Place("group", group=ORDERS), glyphs=ASCII))
    assert any(line.startswith(" orders/0      .+++++++") for line in lines)


def test_a_column_is_found_by_where_its_header_stands(viewed: Viewed) -> None:
    drawn = sheet(viewed(Place("groups")))
    assert drawn.headers == 4
    at = text_of(drawn.lines[4]).index("STATE")
    column = drawn.column_at(at + 2)
    assert column is not None
    assert column.name == "state"
    assert drawn.column_at(1) is None


def test_a_terminal_that_is_too_small_says_so(viewed: Viewed) -> None:
    assert texts(viewed(size=(30, 8)))[0].strip() == "40 by 12 at least"


def test_a_size_is_large_from_both_sides_on() -> None:
    assert Size((160, 45)).is_large
    assert not Size((160, 24)).is_large
    assert not Size((100, 45)).is_large


def test_the_keys_of_the_help_fit_their_column_and_each_is_named_once() -> None:
    [keys] = [column for column in HELP.columns if column.name == "key"]
    no_scene: Any = None
    for row in HELP.rows(no_scene).values():
        assert len(row.label) <= keys.width, row
        names = row.label.split(", ")
        assert len({"escape" if each == "esc" else each for each in names}) == len(names), row
