"""The rule against a reference that looks at everything each time."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from dss_client._key_order import HANDLED, OUT, REFUSED, KeyOrder

Known = tuple[bytes, str, int]


class Reference:
    """Reasons, and what waits, in the order in which it came."""

    def __init__(self) -> None:
        self.reasons: set[tuple[int, Known]] = set()
        self.waiting: list[Known] = []

    def keys(self) -> set[bytes]:
        return {known[0] for _, known in self.reasons}

    def may_go(self, key: bytes) -> bool:
        return key not in self.keys() | {known[0] for known in self.waiting}

    def first(self) -> dict[bytes, Known]:
        free = [known for known in reversed(self.waiting) if known[0] not in self.keys()]
        return {known[0]: known for known in free}


class Pair:
    """The rule and its reference, through the same."""

    def __init__(self) -> None:
        self.rule: KeyOrder[Known] = KeyOrder()
        self.reference = Reference()
        self.came = 0

    def step(self, name: str, key: bytes, source: str) -> None:
        getattr(self, name)(key, source)
        self.compare()

    def compare(self) -> None:
        first = self.reference.first()
        assert set(self.rule.ready) == set(first)
        assert {key: self.rule.queues[key][0].item for key in first} == first
        assert set(self.rule.busy) == self.reference.keys()
        assert self.rule.held == len(self.reference.waiting)
        assert self.rule.is_quiet == (not self.reference.reasons and not self.reference.waiting)
        for key in (b"a", b"b", b""):
            assert self.rule.may_go(key) == self.reference.may_go(key)

    def come(self, key: bytes, source: str) -> None:
        self.came += 1
        known = (key, source, self.came)
        if self.rule.may_go(key):
            self._occupy(OUT, known)
        else:
            self.rule.hold(*known, known)
            self.reference.waiting.append(known)

    def go(self, key: bytes, source: str) -> None:
        found = self.rule.next()
        first = self.reference.first()
        assert (found is None) == (not first)
        if found is not None:
            _, known = found
            assert known == first[known[0]]
            self.reference.waiting.remove(known)
            self._occupy(OUT, known)

    def put_back(self, key: bytes, source: str) -> None:
        if known := self._oldest(OUT, key, source):
            self.rule.hold_first(*known, known)
            self.reference.waiting.insert(0, known)
            self._release(OUT, known)

    def settle(self, key: bytes, source: str) -> None:
        if known := self._oldest(OUT, key, source):
            self._release(OUT, known)

    def refuse(self, key: bytes, source: str) -> None:
        if known := self._oldest(OUT, key, source):
            self._occupy(REFUSED, known)
            self._release(OUT, known)

    def word(self, key: bytes, source: str) -> None:
        if known := self._oldest(REFUSED, key, source):
            ranges = ((known[2], self.came + 1),)
            self.rule.drop(source, ranges)
            self.rule.release_among(REFUSED, source, ranges)
            waiting, reasons = self.reference.waiting, self.reference.reasons
            named = {each for each in waiting if each[1] == source and each[2] >= known[2]}
            self.reference.waiting = [each for each in waiting if each not in named]
            self.reference.reasons = {
                (why, each)
                for why, each in reasons
                if why != REFUSED or each[1] != source or each[2] < known[2]
            }

    def end(self, key: bytes, source: str) -> None:
        self.rule.drop_all(source)
        self.rule.release_all(REFUSED, source)
        self.reference.waiting = [each for each in self.reference.waiting if each[1] != source]
        self.reference.reasons = {
            (why, each)
            for why, each in self.reference.reasons
            if why != REFUSED or each[1] != source
        }

    def _oldest(self, why: int, key: bytes, source: str) -> Known | None:
        own = [each for because, each in self.reference.reasons if because == why]
        return min((each for each in own if each[:2] == (key, source)), default=None)

    def _occupy(self, why: int, known: Known) -> None:
        self.rule.occupy(why, *known)
        self.reference.reasons.add((why, known))

    def _release(self, why: int, known: Known) -> None:
        self.rule.release(why, known[1], known[2])
        self.reference.reasons.discard((why, known))


STEPS = ("come", "go", "put_back", "settle", "refuse", "word", "end")


def test_each_short_story_of_two_keys_goes_as_the_reference_says() -> None:
    moves = [(name, key, "x") for name in STEPS[:6] for key in (b"a", b"b")]
    moves = [each for each in moves if each[:2] != ("go", b"b")] + [("end", b"a", "x")]
    for story in product(moves, repeat=4):
        pair = Pair()
        pair.come(b"a", "x")
        for name, key, source in story:
            getattr(pair, name)(key, source)
        # A story that is shorter is one of those whose last moves find nothing to do.
        pair.compare()


@given(
    st.lists(
        st.tuples(
            st.sampled_from(STEPS), st.sampled_from([b"a", b"b", b""]), st.sampled_from(["x", "y"])
        ),
        max_size=60,
    )
)
def test_long_stories_over_two_grants_go_as_the_reference_says(
    story: list[tuple[str, bytes, str]],
) -> None:
    pair = Pair()
    for move in story:
        pair.step(*move)


def test_a_key_is_busy_until_its_last_reason_is_gone() -> None:
    rule: KeyOrder[str] = KeyOrder()
    rule.occupy(OUT, b"a", "x", 1)
    rule.occupy(HANDLED, b"a", "x", 1)
    rule.occupy(HANDLED, b"a", "x", 1)
    rule.hold(b"a", "x", 2, "second")
    rule.release(OUT, "x", 1)
    rule.release(REFUSED, "x", 1)
    assert rule.first_ready() is None
    rule.release(HANDLED, "x", 1)
    assert rule.first_ready() == "second"
    assert rule.next() == (b"a", "second")


def test_records_without_a_key_that_were_put_back_come_first_and_are_dropped_as_others() -> None:
    rule: KeyOrder[str] = KeyOrder()
    rule.occupy(OUT, b"a", "x", 1)
    rule.hold(b"a", "x", 2, "of a key")
    rule.release(OUT, "x", 1)
    for at in (5, 4, 3):
        rule.hold_first(None, "x", at, f"{at}")
    rule.drop("x", ((4, 5),))
    assert [rule.next() for _ in range(3)] == [(None, "3"), (None, "5"), (b"a", "of a key")]
    rule.hold_first(None, "x", 3, "3")
    rule.drop_all("y")
    assert rule.held == 1
    rule.drop_all("x")
    assert rule.is_quiet


def test_only_what_fits_is_taken() -> None:
    rule: KeyOrder[str] = KeyOrder()
    for at, key in enumerate((b"a", b"b")):
        rule.hold_first(key, "x", at, f"of {key.decode()}")
    assert rule.next(lambda item: item == "of b") == (b"b", "of b")
    assert rule.next(lambda item: item == "of b") is None
    assert rule.held == 1


def test_many_offsets_are_found_in_few_ranges_and_few_in_many() -> None:
    rule: KeyOrder[int] = KeyOrder()
    for at in range(100):
        rule.hold(b"a", "x", at, at)
    rule.drop("x", ((10, 1 << 60),))
    assert rule.held == 10
    rule.drop("x", ((0, 2), (4, 5)))
    assert [each.at for each in rule.queues[b"a"]] == [2, 3, 5, 6, 7, 8, 9]
    rule.clear_held()
    assert rule.is_quiet
