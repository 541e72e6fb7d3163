from hypothesis import given
from hypothesis import strategies as st

from dssd.machines.deadlines import STALE_A_CALL_MAX, Deadlines


def test_keys_come_out_when_they_are_due_and_earliest_first() -> None:
    deadlines: Deadlines[str] = Deadlines()
    deadlines.set("b", 20)
    deadlines.set("a", 10)
    deadlines.set("c", 30)
    assert deadlines.next_ms() == 10
    assert deadlines.due(20) == ["a", "b"]
    assert deadlines.due(29) == []
    assert deadlines.next_ms() == 30


def test_a_deadline_can_be_moved_both_ways_and_cleared() -> None:
    deadlines: Deadlines[str] = Deadlines()
    deadlines.set("a", 10)
    deadlines.set("a", 50)
    assert deadlines.due(49) == []
    deadlines.set("a", 40)
    assert deadlines.next_ms() == 40
    deadlines.clear("a")
    assert deadlines.next_ms() is None
    assert deadlines.due(1_000) == []


def test_extending_a_lease_does_not_let_the_heap_grow() -> None:
    deadlines: Deadlines[str] = Deadlines()
    for at_ms in range(1_000, 100_000):
        deadlines.set("lease", at_ms)
    assert len(deadlines._heap) == 1
    assert deadlines.next_ms() == 99_999


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("set"), st.integers(0, 4), st.integers(0, 60)),
        st.tuples(st.just("clear"), st.integers(0, 4), st.just(0)),
        st.tuples(st.just("due"), st.just(0), st.integers(0, 60)),
    ),
    max_size=60,
)


@given(OPERATIONS)
def test_it_behaves_as_a_plain_dictionary_would(
    operations: list[tuple[str, int, int]],
) -> None:
    deadlines: Deadlines[int] = Deadlines()
    plain: dict[int, int] = {}
    for verb, key, at_ms in operations:
        if verb == "set":
            deadlines.set(key, at_ms)
            plain[key] = at_ms
        elif verb == "clear":
            deadlines.clear(key)
            plain.pop(key, None)
        else:
            due = {own for own, when in plain.items() if when <= at_ms}
            assert set(deadlines.due(at_ms)) == due
            plain = {own: when for own, when in plain.items() if own not in due}
        assert deadlines.next_ms() == min(plain.values(), default=None)


def test_a_call_takes_out_a_bounded_number_and_the_rest_stay_due() -> None:
    deadlines: Deadlines[int] = Deadlines()
    for key in range(5):
        deadlines.set(key, key)
    assert list(deadlines.each_due(10, 3)) == [0, 1, 2]
    assert deadlines.next_ms() == 3
    assert list(deadlines.each_due(10, 3)) == [3, 4]


def test_a_call_looks_past_a_bounded_number_of_cleared_deadlines() -> None:
    deadlines: Deadlines[int] = Deadlines()
    for key in range(STALE_A_CALL_MAX + 10):
        deadlines.set(key, key)
        deadlines.clear(key)
    deadlines.set(-1, 10_000)
    assert deadlines.next_ms() == STALE_A_CALL_MAX
    assert list(deadlines.each_due(10, 3)) == []
    assert deadlines.next_ms() == 10_000


def test_what_is_cleared_on_behalf_of_the_one_before_does_not_come() -> None:
    deadlines: Deadlines[int] = Deadlines()
    for key in range(3):
        deadlines.set(key, key)
    came = []
    for key in deadlines.each_due(10, 3):
        came.append(key)
        deadlines.clear(key + 1)
    assert came == [0, 2]
