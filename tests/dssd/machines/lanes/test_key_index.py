"""The index of keys: of each key records go in the order of their origins, one at a time."""

from itertools import permutations, product

from hypothesis import given
from hypothesis import strategies as st

from dss_core.lane import DEAD, MAIN, RETRY
from dssd.machines.lanes.key_index import KeyIndex, Waiting

LEVELS = (MAIN, RETRY, DEAD)


class Reference:
    """The rule in a few lines: all that waits, looked through each time."""

    def __init__(self) -> None:
        self.all: list[Waiting] = []

    def of(self, key: int) -> list[Waiting]:
        return sorted(each for each in self.all if each.key == key)

    def due(self, key: int) -> Waiting | None:
        waiting = self.of(key)
        return waiting[0] if waiting and waiting[0].level == RETRY else None

    def is_dead(self, key: int) -> bool:
        return bool(self.of(key)) and self.of(key)[0].level == DEAD

    def remove(self, level: int, offset: int) -> Waiting | None:
        found = [each for each in self.all if (each.level, each.offset) == (level, offset)]
        self.all = [each for each in self.all if each not in found]
        return found[0] if found else None


def agree(index: KeyIndex, reference: Reference, keys: set[int]) -> None:
    assert len(index) == len(reference.all)
    for key in keys:
        waiting = reference.of(key)
        assert list(index.waiting(key)) == waiting
        assert (key in index) == bool(waiting)
        assert index.head(key) == (waiting[0] if waiting else None)
        assert index.due(key) == reference.due(key)
        assert index.is_dead(key) == reference.is_dead(key)
        stranded = [each for each in waiting if each.level == RETRY]
        assert list(index.stranded(key)) == (stranded if reference.is_dead(key) else [])
    assert sorted(index.keys()) == sorted({each.key for each in reference.all})
    main = {each.offset: each for each in reference.all if each.level == MAIN}
    assert index.in_main == main


def test_whatever_the_order_in_which_three_records_come_and_go_the_least_origin_is_first() -> None:
    for levels in product(LEVELS, repeat=3):
        records = [Waiting(10 + at, level, at, 1 + at % 2) for at, level in enumerate(levels)]
        for coming, going in product(permutations(records), permutations(records)):
            index, reference = KeyIndex(), Reference()
            for each in coming:
                was_free = not reference.of(each.key)
                assert index.add(each) == was_free
                reference.all.append(each)
                agree(index, reference, {1, 2})
            for each in going:
                assert index.remove(each.level, each.offset) == each
                reference.remove(each.level, each.offset)
                agree(index, reference, {1, 2})


CHANGE = st.tuples(
    st.booleans(), st.integers(0, 9), st.sampled_from(LEVELS), st.integers(0, 9), st.integers(1, 3)
)


@given(st.lists(CHANGE, max_size=60))
def test_it_says_what_a_look_through_all_that_waits_says(
    changes: list[tuple[bool, int, int, int, int]],
) -> None:
    index, reference = KeyIndex(), Reference()
    for comes, origin, level, offset, key in changes:
        if not comes:
            assert index.remove(level, offset) == reference.remove(level, offset)
        elif index.at(level, offset) is None:
            waiting = Waiting(origin, level, offset, key)
            index.add(waiting)
            reference.all.append(waiting)
            assert index.at(level, offset) == waiting
        agree(index, reference, {1, 2, 3})


def test_a_key_that_is_held_anew_is_told_by_the_version() -> None:
    index = KeyIndex()
    index.add(Waiting(1, RETRY, 0, 7))
    before = index.version
    index.add(Waiting(2, RETRY, 1, 7))
    assert index.version == before
    index.add(Waiting(3, RETRY, 2, 8))
    assert index.version > before


def test_one_origin_may_wait_in_two_places() -> None:
    index = KeyIndex()
    index.add(Waiting(5, DEAD, 0, 1))
    index.add(Waiting(5, RETRY, 0, 1))
    assert index.head(1) == Waiting(5, RETRY, 0, 1)
    index.remove(RETRY, 0)
    assert index.is_dead(1)


@given(
    st.lists(
        st.tuples(st.integers(0, 30), st.integers(1, 3)), max_size=9, unique_by=lambda e: e[0]
    ),
    st.lists(st.integers(0, 30), min_size=1, max_size=9, unique=True),
)
def test_records_of_the_stream_that_are_entered_together_wait_as_if_one_by_one(
    before: list[tuple[int, int]], offsets: list[int]
) -> None:
    together, singly = KeyIndex(), KeyIndex()
    for origin, key in before:
        for index in (together, singly):
            index.add(Waiting(origin, RETRY, origin, key))
    offsets.sort()
    newly = [singly.add(Waiting(at, MAIN, at, 1)) for at in offsets]
    assert together.add_in_main(1, offsets) == any(newly)
    assert together.waiting(1) == singly.waiting(1)
    assert (together.in_main, together.version) == (singly.in_main, singly.version)


@given(st.lists(st.integers(1, 9), max_size=9), st.lists(st.integers(1, 9), max_size=9))
def test_of_many_keys_it_says_where_those_are_that_are_held(
    held: list[int], keys: list[int]
) -> None:
    index = KeyIndex()
    for at, key in enumerate(held):
        index.add(Waiting(at, RETRY, at, key))
    assert [*index.held_among(keys)] == [at for at, key in enumerate(keys) if key in held]


def test_what_is_stranded_may_be_asked_for_from_a_record_on_that_waits_no_longer() -> None:
    index = KeyIndex()
    index.add(Waiting(0, DEAD, 0, 1))
    waiting = [Waiting(at, RETRY, at, 1) for at in range(1, 6)]
    for each in waiting:
        index.add(each)
    index.remove(RETRY, 2)
    assert [*index.stranded(1, waiting[1])] == waiting[2:]
