"""Allocation by shards: its laws, over owners of any kind."""

from collections import Counter
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from dss_core.ids import StreamId
from dss_core.shards import shard_of
from dssd.machines.leader.shard_allocation import Situation, by_shard
from dssd.machines.messages import BorrowerId

Owners = dict[StreamId, BorrowerId]
Cut = dict[StreamId, int]

MEMBERS = st.integers(1, 7).map(lambda count: [bytes([at + 1]) for at in range(count)])


def cut(parts: list[int], shards: int) -> Cut:
    """The streams of storage topics with so many partitions, each with its shard."""
    return {
        StreamId(part, at): shard_of(at, partitions, shards)
        for part, partitions in enumerate(parts, start=1)
        for at in range(partitions)
    }


@st.composite
def situations(draw: st.DrawFn) -> tuple[Situation, Cut]:
    """Owners of streams as they are after another count, members that left, pins and all."""
    parts = draw(st.lists(st.integers(1, 16), min_size=1, max_size=3))
    shards, members = cut(parts, draw(st.integers(1, 16))), draw(MEMBERS)
    owner = st.none() | st.sampled_from([*members, b"gone"])
    owners = {stream: own for stream in shards if (own := draw(owner))}
    last = {stream: own for stream in shards if stream not in owners and (own := draw(owner))}
    pin = st.none() | st.none() | st.none() | st.sampled_from([*members[:2], b"gone"])
    pins = {stream: to for stream in shards if (to := draw(pin))}
    return Situation(sorted(shards), members, owners, pins, last), shards


def allotted(now: Situation, shards: Cut, moves_max: int | None = None) -> Owners:
    lanes: dict[int, list[StreamId]] = {}
    for stream in now.streams:
        lanes.setdefault(shards[stream], []).append(stream)
    return by_shard(now, lanes, moves_max)


def settled(now: Situation, shards: Cut) -> Owners:
    return {**now.owners, **allotted(now, shards)}


def owned(after: Mapping[StreamId, BorrowerId], shards: Cut) -> dict[int, set[BorrowerId]]:
    found: dict[int, set[BorrowerId]] = {}
    for stream, number in shards.items():
        found.setdefault(number, set()).add(after[stream])
    return found


@given(situations())
def test_all_streams_of_a_shard_are_with_one_member_of_the_group(
    given_now: tuple[Situation, Cut],
) -> None:
    now, shards = given_now
    for members in owned(settled(now, shards), shards).values():
        assert len(members) == 1
        assert members <= set(now.members)


@given(situations())
def test_shards_are_spread_within_one_where_nothing_is_pinned(
    given_now: tuple[Situation, Cut],
) -> None:
    now, shards = given_now
    now = now._replace(pins={})
    counts = Counter(dict.fromkeys(now.members, 0))
    counts.update(next(iter(who)) for who in owned(settled(now, shards), shards).values())
    assert max(counts.values()) - min(counts.values()) <= 1


@given(situations())
def test_the_first_pin_in_a_shard_pins_all_of_it_and_the_others_share_the_rest(
    given_now: tuple[Situation, Cut],
) -> None:
    now, shards = given_now
    pins: dict[int, BorrowerId] = {}
    for stream in now.streams:
        if now.pins.get(stream) in now.members:
            pins.setdefault(shards[stream], now.pins[stream])
    after = {number: next(iter(who)) for number, who in owned(settled(now, shards), shards).items()}
    assert {number: after[number] for number in pins} == pins
    counts = Counter(dict.fromkeys(now.members, 0))
    counts.update(after.values())
    pinned, fewest = Counter(pins.values()), min(counts.values())
    assert all(counts[each] <= max(fewest + 1, pinned[each]) for each in now.members)


@given(situations())
def test_a_settled_group_stays_as_it_is_and_equal_arguments_give_an_equal_answer(
    given_now: tuple[Situation, Cut],
) -> None:
    now, shards = given_now
    after = settled(now, shards)
    assert allotted(now._replace(owners=after), shards) == {}
    mirrored = now._replace(members=now.members[::-1], owners=dict([*now.owners.items()][::-1]))
    assert allotted(mirrored, shards) == allotted(now, shards)


@given(situations(), st.integers(1, 16))
def test_among_members_that_stay_no_allocation_in_balance_moves_fewer_shards(
    given_now: tuple[Situation, Cut], joining: int
) -> None:
    now, shards = given_now
    now = now._replace(pins={})
    after = now._replace(owners=settled(now, shards))
    grown = after._replace(members=[*now.members, *(bytes([100 + at]) for at in range(joining))])
    moves = allotted(grown, shards)
    moved = {shards[stream] for stream in moves}
    count, members = len(set(shards.values())), len(grown.members)
    share, odd = divmod(count, members)
    held = sorted(
        Counter(next(iter(each)) for each in owned(after.owners, shards).values()).values()
    )
    held = [0] * (members - len(held)) + held
    kept = sum(min(each, share + (place < odd)) for place, each in enumerate(reversed(held)))
    assert len(moved) == count - kept


@given(situations(), st.integers(0, 40))
def test_a_limited_plan_moves_whole_shards_at_most_so_many_streams(
    given_now: tuple[Situation, Cut], moves_max: int
) -> None:
    now, shards = given_now
    whole = allotted(now, shards)
    part = allotted(now, shards, moves_max)
    assert len(part) <= moves_max
    assert set(part) <= set(shards)
    assert allotted(now, shards, len(shards) * len(now.members)).keys() == whole.keys()


def test_a_count_that_cuts_each_shard_in_two_moves_nothing_where_members_have_two_each() -> None:
    three, six = cut([12], 3), cut([12], 6)
    members = [b"a", b"b", b"c"]
    owners = {stream: members[number] for stream, number in three.items()}
    now = Situation(sorted(six), members, owners, {}, {})
    assert allotted(now, six) == {}
    joined = now._replace(members=[*members, b"d", b"e", b"f"])
    moves = allotted(joined, six)
    assert len(moves) == 6
    assert set(moves.values()) == {b"d", b"e", b"f"}


def test_a_shard_of_several_owners_goes_to_the_one_with_most_of_its_streams() -> None:
    shards = cut([6], 2)
    first = [StreamId(1, at) for at in range(3)]
    owners = {first[0]: b"b", first[1]: b"a", first[2]: b"a"}
    owners |= {StreamId(1, at): b"b" for at in range(3, 6)}
    moves = allotted(Situation(sorted(shards), [b"a", b"b"], owners, {}, {}), shards)
    assert moves == {first[0]: b"a"}


def test_a_shard_that_nobody_has_stays_with_whoever_had_it_last() -> None:
    shards = cut([4], 4)
    owners = {StreamId(1, at): member for at, member in enumerate([b"a", b"b", b"a"])}
    last = {StreamId(1, 3): b"b"}
    now = Situation(sorted(shards), [b"b", b"a"], owners, {}, last)
    assert allotted(now, shards) == {StreamId(1, 3): b"b"}
