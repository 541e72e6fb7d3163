from collections import Counter
from math import ceil

from hypothesis import given
from hypothesis import strategies as st

from dss_core.ids import StreamId
from dssd.machines.leader.allocation import limited, sticky
from dssd.machines.messages import BorrowerId

STREAMS = st.integers(0, 40).map(lambda count: [StreamId(1, at) for at in range(count)])
MEMBERS = st.integers(1, 9).map(lambda count: [bytes([at + 1]) for at in range(count)])

Owners = dict[StreamId, BorrowerId]


def settled(streams: list[StreamId], members: list[BorrowerId], owners: Owners) -> Owners:
    return owners | sticky(streams, members, owners)


@st.composite
def situations(draw: st.DrawFn) -> tuple[list[StreamId], list[BorrowerId], Owners]:
    """Owners of any kind: nobody, members, and some who left."""
    streams, members = draw(STREAMS), draw(MEMBERS)
    owner = st.none() | st.sampled_from([*members, b"gone"])
    owners = {stream: draw(owner) for stream in streams}
    return streams, members, {stream: own for stream, own in owners.items() if own}


@given(situations())
def test_every_stream_gets_a_member_and_all_have_within_one_of_each_other(
    situation: tuple[list[StreamId], list[BorrowerId], Owners],
) -> None:
    streams, members, owners = situation
    after = settled(streams, members, owners)
    counts = Counter(dict.fromkeys(members, 0))
    counts.update(after[stream] for stream in streams)
    assert set(counts) == set(members)
    assert max(counts.values()) - min(counts.values()) <= 1


@given(situations())
def test_no_allocation_that_is_balanced_keeps_more_owners(
    situation: tuple[list[StreamId], list[BorrowerId], Owners],
) -> None:
    streams, members, owners = situation
    changes = sticky(streams, members, owners)
    kept = sum(1 for stream in streams if owners.get(stream) in members) - sum(
        1 for stream in changes if owners.get(stream) in members
    )
    share, odd = divmod(len(streams), len(members))
    held = sorted(Counter(own for own in owners.values() if own in members).values())
    held = [0] * (len(members) - len(held)) + held
    best = sum(min(count, share + (place < odd)) for place, count in enumerate(reversed(held)))
    assert kept == best


@st.composite
def pinned_situations(
    draw: st.DrawFn,
) -> tuple[list[StreamId], list[BorrowerId], Owners, Owners]:
    """Some streams are pinned, to members and to some who left."""
    streams, members, owners = draw(situations())
    pin = st.none() | st.sampled_from([*members[:2], b"gone"])
    pins = {stream: draw(pin) for stream in streams}
    return streams, members, owners, {stream: to for stream, to in pins.items() if to}


@given(pinned_situations())
def test_a_pinned_stream_is_with_its_member_and_nobody_else_has_two_more_than_another(
    situation: tuple[list[StreamId], list[BorrowerId], Owners, Owners],
) -> None:
    streams, members, owners, pins = situation
    after = owners | sticky(streams, members, owners, pins)
    pins = {stream: to for stream, to in pins.items() if to in members}
    assert {stream: after[stream] for stream in pins} == pins
    counts = Counter(dict.fromkeys(members, 0))
    counts.update(after[stream] for stream in streams)
    assert set(counts) == set(members)
    pinned = Counter(pins.values())
    fewest = min(counts.values())
    assert all(counts[each] <= max(fewest + 1, pinned[each]) for each in members)


@given(pinned_situations())
def test_with_pins_too_it_is_deterministic_and_a_settled_state_stays(
    situation: tuple[list[StreamId], list[BorrowerId], Owners, Owners],
) -> None:
    streams, members, owners, pins = situation
    changes = sticky(streams, members, owners, pins)
    backward = dict(reversed(owners.items())), dict(reversed(pins.items()))
    assert sticky(streams[::-1], members[::-1], *backward) == changes
    assert sticky(streams, members, owners | changes, pins) == {}


def unevenness(members: list[BorrowerId], owners: Owners) -> int:
    counts = Counter(owners.values())
    return sum(counts[member] ** 2 for member in members)


@given(situations(), st.integers(0, 40))
def test_a_limited_plan_has_at_most_so_many_moves_and_each_improves_the_balance(
    situation: tuple[list[StreamId], list[BorrowerId], Owners], moves_max: int
) -> None:
    streams, members, owners = situation
    moves = limited(streams, members, owners, moves_max=moves_max)
    assert len(moves) <= moves_max
    for stream, taker in moves.items():
        after = owners | {stream: taker}
        before_by = owners.get(stream)
        if before_by in members:
            assert unevenness(members, after) < unevenness(members, owners)
        owners = after


@given(pinned_situations(), st.integers(0, 40))
def test_a_limited_plan_is_a_part_of_the_whole_one_and_goes_on_to_its_balance(
    situation: tuple[list[StreamId], list[BorrowerId], Owners, Owners], moves_max: int
) -> None:
    streams, members, owners, pins = situation
    whole = sticky(streams, members, owners, pins)
    moves = limited(streams, members, owners, pins, moves_max=moves_max)
    assert len(moves) == min(moves_max, len(whole))
    assert set(moves) <= set(whole)
    after = owners | moves
    rest = limited(streams, members, after, pins, moves_max=len(streams))
    assert len(moves) + len(rest) == len(whole)
    assert rest == sticky(streams, members, after, pins)


@given(situations())
def test_the_first_move_of_a_limited_plan_improves_the_balance_as_much_as_any(
    situation: tuple[list[StreamId], list[BorrowerId], Owners],
) -> None:
    streams, members, owners = situation
    whole = sticky(streams, members, owners)
    first = limited(streams, members, owners, moves_max=1)
    if any(owners.get(stream) not in members for stream in whole):
        assert all(owners.get(stream) not in members for stream in first)
        return
    best = min((unevenness(members, owners | dict([each])) for each in whole.items()), default=0)
    for each in first.items():
        assert unevenness(members, owners | dict([each])) <= best


@given(STREAMS, MEMBERS)
def test_a_join_moves_at_most_its_share_and_only_to_the_newcomer(
    streams: list[StreamId], members: list[BorrowerId]
) -> None:
    owners = settled(streams, members, {})
    moves = sticky(streams, [*members, b"new"], owners)
    assert len(moves) <= ceil(len(streams) / (len(members) + 1))
    assert set(moves.values()) <= {b"new"}


@given(STREAMS, MEMBERS)
def test_a_leave_moves_only_what_the_leaver_had(
    streams: list[StreamId], members: list[BorrowerId]
) -> None:
    owners = settled(streams, [*members, b"leaver"], {})
    moves = sticky(streams, members, owners)
    assert set(moves) == {stream for stream in streams if owners[stream] == b"leaver"}
    assert len(moves) <= ceil(len(streams) / (len(members) + 1))


@given(situations())
def test_it_is_deterministic_and_a_settled_state_stays(
    situation: tuple[list[StreamId], list[BorrowerId], Owners],
) -> None:
    streams, members, owners = situation
    changes = sticky(streams, members, owners)
    assert sticky(streams[::-1], members[::-1], dict(reversed(owners.items()))) == changes
    assert sticky(streams, members, owners | changes) == {}


def test_without_members_nothing_changes() -> None:
    stream = StreamId(1, 0)
    assert sticky([stream], [], {stream: b"gone"}) == {}


def test_more_members_than_streams_leaves_some_standing_by() -> None:
    streams = [StreamId(1, 0), StreamId(1, 1)]
    assert sticky(streams, [b"a", b"b", b"c"], {}) == {streams[0]: b"a", streams[1]: b"b"}
