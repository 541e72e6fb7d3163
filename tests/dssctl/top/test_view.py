"""What keys do to a view."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from dssctl.top.model.picture import Picture, step
from dssctl.top.model.places import Place
from dssctl.top.stage.keys import DOES, KEYS, REPLAY_KEYS
from dssctl.top.stage.moves import (
    MOVES,
    chosen,
    filtered,
    gone_to,
    sorted_by,
    started_at,
    tab_chosen,
)
from dssctl.top.stage.screens import SCREENS
from dssctl.top.stage.view import View, looked
from support.dashboard_items import ORDERS, PAYMENTS, group, update

Viewed = Callable[..., View]


def pressed(view: View, *does: str) -> View:
    for each in does:
        view = MOVES[each](view)
    return view


def told(view: View, picture: Picture) -> View:
    return looked(replace(view, picture=picture))


def names(view: View) -> list[str]:
    return [key.partition("@")[0] for key in view.found.keys]


def test_rows_are_sorted_by_lag_at_first_and_by_any_column_then(viewed: Viewed) -> None:
    view = viewed(Place("groups"))
    assert names(view)[:3] == ["payments-settle", "orders-index", "audit-sink"]
    assert names(sorted_by(view, "name"))[:2] == ["audit-sink", "billing"]
    assert names(sorted_by(sorted_by(view, "name"), "name"))[0] == "search-feed"
    assert names(pressed(view, "reverse"))[-1] == "payments-settle"


def test_every_column_of_every_list_can_be_sorted_by(viewed: Viewed) -> None:
    for noun in SCREENS:
        view = viewed(Place(noun, group=PAYMENTS, stream="payments/0/0", name="2", offset=0))
        for tab in range(len(view.screen.tabs)):
            seen = tab_chosen(view, tab)
            for column in seen.tab.listing.columns:
                assert len(sorted_by(seen, column.name).found.keys) == len(seen.found.keys)


def test_rows_without_a_value_come_last_whichever_way_they_are_sorted(viewed: Viewed) -> None:
    view = sorted_by(viewed(Place("groups")), "drain")
    assert names(view)[-2:] == ["ledger-tail", "search-feed"]
    assert names(pressed(view, "reverse"))[-2:] == ["ledger-tail", "search-feed"]


def test_the_first_row_is_chosen_until_one_is_and_then_it_stays_the_same_row(
    viewed: Viewed, picture: Picture
) -> None:
    view = viewed(Place("groups"))
    lagging = step(picture, update(group("search-feed", lag=1_000_000)))
    assert told(view, lagging).chosen == told(view, lagging).chosen
    spot = told(view, lagging).chosen
    assert spot is not None
    assert spot.key == "search-feed@orders/#"
    moved = pressed(view, "down")
    spot = told(moved, lagging).chosen
    assert spot is not None
    assert (spot.key, told(moved, lagging).index) == (ORDERS, 2)


def test_the_neighbour_of_a_row_that_went_is_chosen(viewed: Viewed) -> None:
    view = pressed(viewed(Place("groups")), "bottom")
    left = filtered(view, "!search")
    assert left.index == len(left.found.keys) - 1


def test_the_chosen_row_is_always_on_the_screen(viewed: Viewed, picture: Picture) -> None:
    many = step(picture, update(*(group(f"g{number:03}") for number in range(300))))
    view = told(viewed(Place("groups")), many)
    for does in ("page_down", "page_down", "down", "bottom", "page_up", "up", "top"):
        view = pressed(view, does)
        assert view.here.first <= view.index < view.here.first + view.rows_shown
    assert chosen(view, 10_000).index == 305


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("pay", ["payments-settle", "ledger-tail"]),
        ("PAY !ledger", ["payments-settle"]),
        ("lag>10k", ["payments-settle", "orders-index"]),
        ("lag>10k lag<20k", ["orders-index"]),
        ("state=paused", ["audit-sink"]),
        ("state!=active members=2", ["audit-sink", "billing"]),
        ("drain<2m", ["orders-index"]),
        ("nothing>3", []),
        ("lag>much", []),
    ],
)
def test_a_filter_takes_words_and_conditions(text: str, found: list[str], viewed: Viewed) -> None:
    assert names(filtered(viewed(Place("groups")), text)) == found


def test_back_clears_the_filter_first_then_goes_a_place_back(viewed: Viewed) -> None:
    view = filtered(viewed(Place("groups")), "pay")
    view = pressed(view, "back")
    assert (view.here.place, len(view.found.keys)) == (Place("groups"), 6)
    assert pressed(view, "back", "back").here.place == Place("pulse")


def test_faults_are_those_that_somebody_should_look_at(viewed: Viewed) -> None:
    found = names(pressed(viewed(Place("groups")), "faults"))
    assert found == ["payments-settle", "audit-sink", "billing"]


def test_a_way_leads_from_groups_to_a_record_and_back(viewed: Viewed) -> None:
    view = pressed(viewed(Place("groups")), "open")
    assert view.here.place == Place("group", group=PAYMENTS)
    view = pressed(view, "open")
    assert view.here.place == Place("stream", group=PAYMENTS, stream="payments/0/0")
    view = pressed(view, "back", "back", "down")
    assert [each.place.noun for each in view.way.visits] == ["pulse", "groups"]


def test_each_list_of_a_screen_is_found_as_it_was_left(viewed: Viewed) -> None:
    view = pressed(viewed(Place("group", group=ORDERS)), "down", "down", "next_tab")
    assert view.tab.listing.title == "Members"
    view = pressed(view, "previous_tab")
    assert (view.tab.listing.title, view.index) == ("Streams", 2)
    assert pressed(view, "previous_tab").tab.listing.title == "Errors"


def test_what_is_frozen_stands_still_until_it_is_let_go(viewed: Viewed, picture: Picture) -> None:
    view = pressed(viewed(Place("groups")), "freeze")
    more = step(picture, update(group("new", lag=10**9)))
    assert len(told(view, more).found.keys) == 6
    assert names(pressed(told(view, more), "freeze"))[0] == "new"


def test_a_command_begins_a_new_way_behind_the_first_screen(viewed: Viewed) -> None:
    view = pressed(viewed(Place("groups")), "open")
    view = started_at(view, Place("topics"))
    assert [each.place.noun for each in view.way.visits] == ["pulse", "topics"]
    assert [each.place.noun for each in started_at(view, Place("pulse")).way.visits] == ["pulse"]


def test_a_group_named_before_any_is_known_is_found_once_it_is(picture: Picture) -> None:
    from dssctl.top.paint.frame import Badge

    early = gone_to(View(Badge("")), Place("group", group="payments-settle"))
    assert early.here.place.group == "payments-settle"
    assert told(early, picture).here.place.group == PAYMENTS


def test_events_of_a_group_are_its_own(viewed: Viewed) -> None:
    view = pressed(viewed(Place("groups")), "events")
    assert view.here.place == Place("events", group=PAYMENTS)
    assert view.found.keys == ("3", "2")


def test_a_row_is_described_on_a_page_that_stays(viewed: Viewed) -> None:
    view = pressed(viewed(Place("groups")), "describe")
    texts = {row.label: row.text for row in view.found.rows.values()}
    assert texts["group"] == "payments-settle"
    assert texts["state"] == "rebalancing"


def test_no_move_fails_wherever_one_is(viewed: Viewed) -> None:
    for noun in SCREENS:
        view = viewed(Place(noun, group="gone@x/#", stream="gone/0/0", name="gone", offset=0))
        for does in MOVES:
            assert isinstance(pressed(view, does), View)


def test_a_key_does_one_thing_and_no_key_without_shift_changes_anything() -> None:
    from dssctl.top.stage.actions import ACTION_TABLE

    named = [key for entry in (*KEYS, *REPLAY_KEYS) for key in entry.keys]
    assert len(named) == len(set(named)) == len(DOES)
    assert all(action.key.isupper() and action.key not in DOES for action in ACTION_TABLE)
