"""The board: whoever applies what it tells has what there is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dssd.machines import watch_board
from dssd.machines.watch_board import (
    Board,
    Changes,
    Forget,
    Key,
    Moved,
    OnlyThese,
    Scope,
    ScopeLooked,
    Value,
    WatchInput,
    WatchTopic,
    changes_after,
    is_known,
    step,
)

LAGS, GROUPS = WatchTopic.LAGS, WatchTopic.GROUPS


def item(group: int, name: int) -> Key:
    return Key(LAGS, f"g{group}@#", f"s/{name}")


def items_of(group: int, values: dict[int, int]) -> ScopeLooked:
    items: dict[Key, Value] = {item(group, name): value for name, value in values.items()}
    return ScopeLooked(Scope(LAGS, group), items)


looks = st.builds(
    items_of, st.integers(1, 3), st.dictionaries(st.integers(0, 4), st.integers(0, 2), max_size=5)
)
only = st.builds(OnlyThese, st.just(LAGS), st.frozensets(st.integers(1, 3)))
has_room = st.booleans()
"""Whether the watcher has room after an input."""


def told_after(board: Board, after: int) -> Changes:
    """All that changed after a revision, from two turns at a time."""
    changed: list[tuple[Key, Value]] = []
    removed: list[Key] = []
    while True:
        found = changes_after(board, after, board.revision, 2)
        changed += found.changed
        removed += found.removed
        assert after < found.last or found.last == board.revision
        after = found.last
        if after == board.revision:
            return Changes(changed, removed, after)


def apply(known: dict[Key, Value], board: Board, revision: int) -> int:
    """What a watcher makes of what it is told; it may have to begin anew."""
    if not is_known(board, revision):
        known.clear()
        revision = 0
    changes = told_after(board, revision)
    keys = [*(key for key, _ in changes.changed), *changes.removed]
    assert len(set(keys)) == len(keys), "each item once"
    known.update(changes.changed)
    for key in changes.removed:
        known.pop(key, None)  # it may have come and gone since
    return changes.last


@given(st.lists(st.tuples(looks | only | st.just(Forget()), has_room), max_size=30))
def test_changes_applied_to_what_was_told_give_what_there_is(
    steps: list[tuple[WatchInput, bool]],
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(watch_board, "WATCH_TOMBSTONES_MAX", 3)
        patch.setattr(watch_board, "WATCH_STALE_MIN", 4)
        board, known, revision = Board(), dict[Key, Value](), 0
        for given_input, told in steps:
            board, _ = step(board, given_input)
            assert len(board.gone) <= 3
            assert len(board.turns) <= 2 * (len(board.entries) + 3) + 4
            if told:
                revision = apply(known, board, revision)
                assert known == {key: entry.value for key, entry in board.entries.items()}


@given(st.lists(looks | only, max_size=20))
def test_the_board_has_the_latest_look_at_each_group(steps: list[ScopeLooked | OnlyThese]) -> None:
    board, model = Board(), dict[int, dict[Key, Value]]()
    for given_input in steps:
        before = board.revision
        board, effects = step(board, given_input)
        assert effects == ((Moved(board.revision),) if board.revision > before else ())
        if isinstance(given_input, ScopeLooked):
            model[given_input.scope.group_id] = dict(given_input.items)
        else:
            model = {key: each for key, each in model.items() if key in given_input.group_ids}
    expected = {key: value for each in model.values() for key, value in each.items()}
    assert {key: entry.value for key, entry in board.entries.items()} == expected


def test_what_did_not_change_is_not_told() -> None:
    board, _ = step(Board(), items_of(1, {0: 5, 1: 5}))
    seen = board.revision
    board, effects = step(board, items_of(1, {0: 5, 1: 5}))
    assert (effects, told_after(board, seen)) == ((), ([], [], seen))
    board, _ = step(board, items_of(1, {0: 5, 1: 6}))
    assert told_after(board, seen).changed == [(item(1, 1), 6)]


def test_many_changes_of_an_item_are_told_as_one() -> None:
    board = Board()
    for value in range(100):
        board, _ = step(board, items_of(1, {0: value, 1: -1}))
    assert told_after(board, 2).changed == [(item(1, 0), 99)]


def test_what_changes_while_it_is_told_in_parts_is_told_later() -> None:
    board, _ = step(Board(), items_of(1, {0: 5, 1: 5, 2: 5}))
    top = board.revision
    first = changes_after(board, 0, top, 2)
    board, _ = step(board, items_of(1, {0: 6, 1: 5, 2: 6}))
    assert changes_after(board, first.last, top, 2) == ([], [], top)
    assert told_after(board, top).changed == [(item(1, 0), 6), (item(1, 2), 6)]


def test_who_was_told_less_than_the_oldest_tombstone_begins_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watch_board, "WATCH_TOMBSTONES_MAX", 2)
    board, _ = step(Board(), items_of(1, dict.fromkeys(range(5), 0)))
    seen = board.revision
    board, _ = step(board, items_of(1, {0: 0, 1: 0, 2: 0}))
    assert is_known(board, seen)
    assert len(told_after(board, seen).removed) == 2
    board, _ = step(board, items_of(1, {0: 0}))
    assert not is_known(board, seen)
    assert told_after(board, 0).changed == [(item(1, 0), 0)]


def test_nobody_goes_on_behind_what_was_forgotten() -> None:
    board, _ = step(Board(), items_of(1, {0: 5}))
    seen = board.revision
    board, _ = step(board, Forget())
    assert board.entries == {}
    assert not is_known(board, seen)
    assert told_after(board, 0) == ([], [], board.revision)
