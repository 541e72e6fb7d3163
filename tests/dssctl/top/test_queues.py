"""Dead letters in the dashboard: from errors to keys to records, and what is done with them."""

from collections.abc import Callable
from dataclasses import replace

from dss_core.changes import BuryRetries, DiscardDeadLetters, RedriveDeadLetters, RetryNow
from dssctl.top.model.answers import Answer
from dssctl.top.model.places import Place
from dssctl.top.paint.spans import text_of
from dssctl.top.stage.actions import action_of, actions_at
from dssctl.top.stage.command_lines import change_line, dead_line
from dssctl.top.stage.moves import MOVES
from dssctl.top.stage.places_named import place_named
from dssctl.top.stage.sheet import sheet
from dssctl.top.stage.view import View, looked
from support.dashboard_items import dead_letters

Viewed = Callable[..., View]
GROUP = "billing@orders/#"
DEAD = Place("dead", group=GROUP)


def seen(viewed: Viewed, place: Place = DEAD, size: tuple[int, int] = (80, 24)) -> View:
    errors, keys, entries = dead_letters()
    answer = Answer(place, errors=errors, keys=keys, entries=entries)
    return looked(replace(viewed(place, size), answer=answer))


def opened(view: View) -> View:
    """The place that the chosen row opens, with the same answer."""
    further = MOVES["open"](view)
    assert view.answer is not None
    return looked(replace(further, answer=replace(view.answer, place=further.here.place)))


def test_errors_open_keys_and_these_records_and_one_record_its_payload(viewed: Viewed) -> None:
    keys = opened(seen(viewed))
    assert keys.here.place == Place("dead-keys", group=GROUP, name="b6732b224435d6df")
    records = opened(keys)
    assert records.here.place == replace(keys.here.place, noun="dead-records", key=b"ida")
    letter = opened(records)
    assert letter.here.place == Place("dead-letter", group=GROUP, name="orders/0/3@17")
    text = "\n".join(map(text_of, sheet(letter).lines))
    assert "5 times, first 1m30s ago" in text
    assert '"price": null' in text
    assert [dead_line(view.here.place) for view in (keys, records, letter)] == [
        f"dssctl dlq keys '{GROUP}' --error b6732b224435d6df",
        f"dssctl dlq ls '{GROUP}' --error b6732b224435d6df --key ida",
        f"dssctl dlq peek '{GROUP}' orders/0/3@17",
    ]


def test_a_redrive_asks_for_a_canary_and_means_what_is_chosen(viewed: Viewed) -> None:
    view = seen(viewed)
    redrive = action_of("D", view.chosen)
    assert redrive is not None
    assert redrive.change is not None
    assert (redrive.suggests, redrive.asks != "") == ("10", True)
    spot = view.chosen
    assert spot is not None
    change = redrive.change(spot, "10")
    assert change == RedriveDeadLetters(GROUP, error="b6732b224435d6df", canary=10)
    assert change_line(change) == (
        f"dssctl dlq redrive --error b6732b224435d6df --canary 10 '{GROUP}'"
    )
    assert redrive.change(spot, "0") == RedriveDeadLetters(GROUP, error="b6732b224435d6df")
    keys = opened(view).chosen
    assert keys is not None
    assert redrive.change(keys, "") == RedriveDeadLetters(
        GROUP, error="b6732b224435d6df", key=b"ida"
    )


def test_a_discard_has_to_be_agreed_to_by_name_and_the_group_is_not_at_risk(
    viewed: Viewed,
) -> None:
    spot = opened(opened(seen(viewed))).chosen
    assert spot is not None
    discard = action_of("X", spot)
    assert discard is not None
    assert discard.severe is not None
    assert discard.change is not None
    assert discard.severe(spot) == "billing"
    assert discard.change(spot, "") == DiscardDeadLetters(GROUP, stream="orders/0/3", offset=17)
    assert [each.key for each in actions_at(spot)] == ["D", "X"]


def test_what_waits_may_come_now_be_passed_over_or_given_up(viewed: Viewed) -> None:
    _, _, entries = dead_letters()
    place = Place("dead", group=GROUP)
    view = viewed(place, (80, 24))
    view = replace(view, way=view.way.seeing(replace(view.here, tab=3)))
    waiting = tuple(replace(each, level="retry", due_ms=0) for each in entries)
    view = looked(replace(view, answer=Answer(place, entries=waiting)))
    spot = view.chosen
    assert spot is not None
    assert [each.key for each in actions_at(spot)] == ["N", "K", "B"]
    changes = {each.key: each.change(spot, "") for each in actions_at(spot) if each.change}
    assert changes["N"] == RetryNow(GROUP, stream="orders/0/3", offset=17)
    assert changes["B"] == BuryRetries(GROUP, stream="orders/0/3", offset=17)


def test_the_dead_letters_of_a_group_are_found_by_name(viewed: Viewed) -> None:
    picture = seen(viewed).seen
    group = next(iter(picture.items.groups.values()))
    found = place_named(f"dead {group.name}", picture)
    assert isinstance(found, Place)
    assert found.noun == "dead"
