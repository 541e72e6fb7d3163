"""How the change of an operation is shown to people."""

from dssctl.operation_items import SHOWN_KIND
from dssctl.output import Value


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
