"""How the change of an operation is shown to people."""

import pytest

from dssctl.nouns.operations import OPERATION_KIND, PLAN_KIND, SHOWN_KIND
from dssctl.output import Instant, Item, Value


def cell(change: Value) -> str:
    [column] = [each for each in SHOWN_KIND.columns if each.field == "change"]
    return column.text({"change": change}, 0)


def test_a_change_is_shown_by_its_fields_without_what_is_empty() -> None:
    change: Value = {
        "change": "EditGroup",
        "group": "billing",
        "ack_wait_ms": 500,
        "on_damage": None,
        "streams": [],
    }
    assert cell(change) == "group billing, ack wait ms 500"


def test_of_a_long_list_a_change_shows_its_length() -> None:
    targets: Value = [{"stream": "orders/0/0", "offset": 1}, {"stream": "orders/0/1", "offset": 2}]
    change: Value = {"direction": "skip", "streams": ["a/0/0", "b/0/0"], "targets": targets}
    assert cell(change) == "direction skip, streams a/0/0,b/0/0, targets (2 entries)"


def test_what_is_not_kept_in_a_listing_is_a_dash() -> None:
    assert cell(None) == "-"
    assert cell({}) == "-"


def test_of_a_redrive_that_runs_it_is_told_how_many_of_how_many_are_back() -> None:
    for kind in (SHOWN_KIND, OPERATION_KIND):
        [column] = [each for each in kind.columns if each.field == "records_done"]
        assert column.text({"records_done": 300, "records_asked": 2_000}, 0) == "300/2000"
        assert column.text({"records_done": None, "records_asked": None}, 0) == "-"


UNTIL = Instant(1_795_000_000_123_456)


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ({"undoable": True, "undoable_until": UNTIL}, "possible until 2026-11-18T11:06:40Z"),
        ({"undoable": True, "undoable_until": None}, "yes"),
        (
            {"undoable": False, "not_undoable_because": "its records are deleted"},
            "this cannot be undone: its records are deleted",
        ),
    ],
)
def test_a_plan_says_in_words_what_cannot_be_undone(plan: Item, said: str) -> None:
    [column] = [each for each in PLAN_KIND.columns if each.header == "UNDO"]
    item = {"nothing_to_do": False, "undoable_until": None, **plan}
    assert column.text(item, 0) == said
    assert column.text({**item, "nothing_to_do": True}, 0) == "there is nothing to do"
