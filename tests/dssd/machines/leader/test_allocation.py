from collections import Counter
from math import ceil

from hypothesis import given
from hypothesis import strategies as st

from dss_core.ids import StreamId
from dssd.machines.leader.allocation import sticky
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
