from pathlib import Path

import pytest

from dss_sim.groups.history import (
    AckDurable,
    Appended,
    Damaged,
    Declared,
    Ended,
    Event,
    HandedOut,
    Lost,
    Passed,
    Published,
    Stored,
    Unpublished,
    Unreadable,
    read_history,
    write_history,
)


def test_what_is_read_is_what_was_written(tmp_path: Path) -> None:
    events: list[Event] = [
        Declared(0, "billing", (("orders/0/0", 3), ("orders/0/1", 0)), 0),
        HandedOut(5, "billing", "orders/0/0", 3, "ann", 1, 1, False, "k"),
        HandedOut(5, "billing", "orders/0/0", 4, "ann", 1, 1, False),
        Stored(6, "orders/0/0", 3, 2, "p", 0, 1, "sync", ("k", None)),
        Appended(6, "orders/0/0", 5, ("", None)),
        Published(7, "orders/0/0", "p", 0, 3, 2, True),
        Unpublished(7, "orders/0/0", "p", 1, "DSS3001"),
        Damaged(8, "orders/0/0", 3, 5),
        Lost(8, "orders/0/0", 5, 9),
        Unreadable(8, "orders/0/0", 9, 10),
        Passed(8, "billing", "orders/0/0", 3, 5),
        AckDurable(9, "billing", "orders/0/0", ((3, 4), (6, 8)), "ann"),
        Ended(10),
    ]
    path = tmp_path / "history.jsonl"
    write_history(path, events)
    read = list(read_history(path))
    assert read == events
    assert [type(event) for event in read] == [type(event) for event in events]


def test_a_line_that_is_no_event_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    path.write_text('["Invented", 1]\n')
    with pytest.raises(ValueError, match="not an event"):
        list(read_history(path))
