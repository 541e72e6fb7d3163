"""Watchers: who is told, and until when."""

from dssd.listeners import Listeners


def test_each_is_told_in_turn_until_it_stops() -> None:
    watchers: Listeners[int] = Listeners()
    told: list[tuple[str, int]] = []
    stop = watchers.add(lambda what: told.append(("a", what)))
    watchers.add(lambda what: told.append(("b", what)))
    watchers.tell(1)
    stop()
    stop()
    watchers.tell(2)
    assert told == [("a", 1), ("b", 1), ("b", 2)]


def test_one_that_stops_while_all_are_told_harms_nobody() -> None:
    watchers: Listeners[int] = Listeners()
    told: list[int] = []
    stop = watchers.add(lambda _: stop())
    watchers.add(told.append)
    watchers.tell(1)
    watchers.tell(2)
    assert told == [1, 2]
