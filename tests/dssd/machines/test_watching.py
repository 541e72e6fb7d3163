"""The board: whoever applies what it tells has what there is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dssd.machines import watching
from dssd.machines.watching import (
    Board,
    Forget,
    Key,
    Looked,
    Moved,
    OnlyThese,
    Scope,
    Value,
    WatchInput,
    WatchTopic,
    changes_since,
    step,
)

LAGS, GROUPS = WatchTopic.LAGS, WatchTopic.GROUPS


def item(group: int, name: int) -> Key:
    return Key(LAGS, f"g{group}@#", f"s/{name}")


def items_of(group: int, values: dict[int, int]) -> Looked:
    items: dict[Key, Value] = {item(group, name): value for name, value in values.items()}
    return Looked(Scope(LAGS, group), items)


looks = st.builds(
    items_of, st.integers(1, 3), st.dictionaries(st.integers(0, 4), st.integers(0, 2), max_size=5)
)
only = st.builds(OnlyThese, st.just(LAGS), st.frozensets(st.integers(1, 3)))
told_after = st.booleans()
"""Whether the watcher has room after an input."""


def apply(known: dict[Key, Value], board: Board, revision: int) -> int:
    """What a watcher makes of what it is told; it may have to begin anew."""
    changes = changes_since(board, revision)
    if changes is None:
        known.clear()
        changes = changes_since(board, 0)
        assert changes is not None
    assert len({change.key for change in changes}) == len(changes)
    assert [change.revision for change in changes] == sorted(each.revision for each in changes)
    for _, key in changes:
        if key in board.entries:
            known[key] = board.entries[key].value
        else:
            known.pop(key, None)  # it came and went since
    return board.revision


@given(st.lists(st.tuples(looks | only | st.just(Forget()), told_after), max_size=30))
def test_changes_applied_to_what_was_told_give_what_there_is(
    steps: list[tuple[WatchInput, bool]],
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(watching, "WATCH_TOMBSTONES_MAX", 3)
        board, known, revision = Board(), dict[Key, Value](), 0
        for given_input, told in steps:
            board, _ = step(board, given_input)
            assert len(board.gone) <= 3
            if told:
                revision = apply(known, board, revision)
                assert known == {key: entry.value for key, entry in board.entries.items()}


@given(st.lists(looks | only, max_size=20))
def test_the_board_has_the_latest_look_at_each_group(steps: list[Looked | OnlyThese]) -> None:
    board, model = Board(), dict[int, dict[Key, Value]]()
    for given_input in steps:
        before = board.revision
        board, effects = step(board, given_input)
        assert effects == ((Moved(board.revision),) if board.revision > before else ())
        if isinstance(given_input, Looked):
            model[given_input.scope.group_id] = dict(given_input.items)
        else:
            model = {key: each for key, each in model.items() if key in given_input.group_ids}
    expected = {key: value for each in model.values() for key, value in each.items()}
    assert {key: entry.value for key, entry in board.entries.items()} == expected


def test_what_did_not_change_is_not_told() -> None:
    board, _ = step(Board(), items_of(1, {0: 5, 1: 5}))
    seen = board.revision
    board, effects = step(board, items_of(1, {0: 5, 1: 5}))
    assert (effects, changes_since(board, seen)) == ((), [])
    board, _ = step(board, items_of(1, {0: 5, 1: 6}))
    assert [change.key for change in changes_since(board, seen) or ()] == [item(1, 1)]


def test_many_changes_of_an_item_are_told_as_one() -> None:
    board = Board()
    for value in range(100):
        board, _ = step(board, items_of(1, {0: value, 1: -1}))
    found = changes_since(board, 2)
    assert found is not None
    assert [change.key for change in found] == [item(1, 0)]


def test_who_was_told_less_than_the_oldest_tombstone_begins_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watching, "WATCH_TOMBSTONES_MAX", 2)
    board, _ = step(Board(), items_of(1, dict.fromkeys(range(5), 0)))
    seen = board.revision
    board, _ = step(board, items_of(1, {0: 0, 1: 0, 2: 0}))
    assert len(changes_since(board, seen) or ()) == 2
    board, _ = step(board, items_of(1, {0: 0}))
    assert changes_since(board, seen) is None
    assert len(changes_since(board, 0) or ()) == 1


def test_nobody_goes_on_behind_what_was_forgotten() -> None:
    board, _ = step(Board(), items_of(1, {0: 5}))
    seen = board.revision
    board, _ = step(board, Forget())
    assert board.entries == {}
    assert changes_since(board, seen) is None
    assert changes_since(board, 0) == []
