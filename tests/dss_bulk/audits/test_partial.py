"""Laws of what parts give together."""

from functools import reduce

from hypothesis import given
from hypothesis import strategies as st

from dss_bulk.audits import origins, top_keys
from dss_bulk.audits.origins import Origins
from dss_bulk.audits.partial import Amount, Check, Found, Partial, first, merged
from dss_bulk.audits.top_keys import AUDIT_TOP_KEYS_MAX, TopKeys

COUNTS = st.integers(1, 9)
ORIGINS = st.builds(
    Origins,
    pages=st.dictionaries(
        st.tuples(st.sampled_from("st"), st.integers(0, 2)), st.integers(1, 255), max_size=3
    ),
    unexamined=st.integers(0, 2),
)
PARTS = st.builds(
    Partial,
    streams=st.dictionaries(st.sampled_from("ab"), st.builds(Amount, COUNTS, COUNTS)),
    keyless=COUNTS,
    found=st.dictionaries(
        st.sampled_from(list(Check)),
        st.builds(Found, COUNTS, st.lists(st.sampled_from("uvwxyz")).map(first)),
    ),
    keys=st.dictionaries(st.integers(0, 9), COUNTS).map(
        lambda counts: TopKeys(counts, {key: b"%d" % key for key in counts})
    ),
    origins=ORIGINS,
    orders=st.dictionaries(
        st.tuples(st.sampled_from("ab"), st.just("s")),
        st.tuples(st.integers(0, 9), st.integers(0, 9)).map(lambda two: (min(two), max(two))),
    ),
)


@given(PARTS, PARTS, PARTS)
def test_it_does_not_matter_how_parts_are_grouped(a: Partial, b: Partial, c: Partial) -> None:
    assert merged(merged(a, b), c) == merged(a, merged(b, c))
    assert merged(Partial(), a) == merged(a, Partial()) == a


@given(st.lists(st.lists(st.integers(0, 200), max_size=30), max_size=6))
def test_every_origin_that_came_before_is_a_double(parts: list[list[int]]) -> None:
    whole = Origins()
    for part in parts:
        bits = reduce(lambda all_, one: all_ | 1 << one, part, 0)
        whole = origins.merged(whole, Origins({("s", 0): bits} if part else {}))
    every = [one for part in parts for one in set(part)]
    assert whole.doubles == len(every) - len(set(every))
    assert whole.records == len(set(every))
    twice = sorted(("s", one) for one in set(every) if every.count(one) > 1)
    assert list(whole.doubled) == twice[: len(whole.doubled)]


def test_pages_that_do_not_fit_are_counted_as_unexamined() -> None:
    left, right = Origins({("s", 0): 0b11}), Origins({("s", 0): 0b10, ("s", 1): 0b111})
    whole = origins.merged(left, right, 1)
    assert (whole.doubles, whole.unexamined, list(whole.pages)) == (1, 3, [("s", 0)])


@given(st.lists(st.lists(st.integers(0, 150), min_size=1, max_size=400), min_size=1, max_size=5))
def test_a_key_is_never_counted_too_high_nor_lower_than_is_said(parts: list[list[int]]) -> None:
    whole = TopKeys()
    for part in parts:
        whole = top_keys.merged(whole, TopKeys({key: part.count(key) for key in set(part)}))
    every = [key for part in parts for key in part]
    assert len(whole.counts) <= AUDIT_TOP_KEYS_MAX
    assert whole.short <= len(every) / (AUDIT_TOP_KEYS_MAX + 1)
    for key in set(every):
        least = whole.counts.get(key, 0)
        assert least <= every.count(key) <= least + whole.short


def test_origins_that_fall_from_part_to_part_are_told() -> None:
    def part(stream: str, low: int, high: int) -> Partial:
        return Partial(orders={(stream, "s"): (low, high)})

    rising = merged(part("a", 0, 4), merged(part("b", 0, 9), part("a", 4, 8)))
    assert rising.apart == frozenset()
    assert merged(rising, part("a", 7, 9)).apart == {("a", "s")}
