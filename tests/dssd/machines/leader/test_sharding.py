"""Who has a shard: nobody else is given records of it, whoever has it later has a higher epoch."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dss_core.ids import StreamId
from dss_core.shards import Shard
from dssd.machines.borrower import events as borrower_events
from dssd.machines.leader.events import PresentStream, ShareByShards, StreamsChanged
from dssd.machines.leader.hand_over_events import TransferGrant, Unpin
from dssd.machines.leader.lent_stream import HELD, StreamState
from dssd.machines.leader.slicing import Slicing
from dssd.machines.messages import GrantedStream
from support.played_group import PlayedGroup, PlayedMember
from support.played_leader import session_of, stream

both_protocols = pytest.mark.parametrize("protocol", ["borrow", "lease"])
A, B, C, D = b"a", b"b", b"c", b"d"


class ShardedGroup(PlayedGroup):
    """A group of so many streams and shards, in which each grant is looked at."""

    def __init__(self, protocol: str, streams: int, shards: int) -> None:
        self.assigned: dict[bytes, Counter[Shard]] = {}
        self.epochs: dict[int, int] = {}
        """The highest epoch that anybody had a partition with."""
        self.told: list[tuple[bytes, str, Shard]] = []
        super().__init__(protocol, streams=streams, slicing=Slicing(shards, {1: streams}))

    def set_count(self, number: int, shards: int) -> None:
        """An operation cuts the streams anew."""
        assert self.slicing is not None
        self.slicing = Slicing(shards, self.slicing.partitions)
        self.ask(ShareByShards(number, self.slicing))

    def installed(self, member: PlayedMember, granted: GrantedStream) -> None:
        name, shard, at = member.machine.borrower_id, granted.shard, granted.stream.partition
        assert shard is not None
        assert self.slicing is not None
        for other in self.members.values():
            if other is member or other.over:
                continue
            held = {
                each.partition: of.shard
                for each, of in other.granted.items()
                if of.shard is not None
            }
            if member.machine.by_shard:
                own = {each for each in held if shard.covers(each, self.partitions)}
                assert not own, f"{name!r} has {shard} while another has {own} of it"
            if other.machine.by_shard:
                theirs = [each for each in held.values() if each.covers(at, self.partitions)]
                assert not theirs, f"{name!r} has {at} while another has {theirs}"
        if not member.machine.by_shard:
            return
        mine = self.assigned.setdefault(name, Counter())
        mine[shard] += 1
        if mine[shard] == 1:
            self.told.append((name, "assigned", shard))
            for each in range(self.partitions):
                if shard.covers(each, self.partitions):
                    assert granted.shard_epoch > self.epochs.get(each, 0)
                    self.epochs[each] = granted.shard_epoch

    def dropping(self, member: PlayedMember, dropped: StreamId) -> None:
        granted = member.granted.get(dropped)
        if granted is None or granted.shard is None or not member.machine.by_shard:
            return
        mine = self.assigned[member.machine.borrower_id]
        mine[granted.shard] -= 1
        if not mine[granted.shard]:
            self.told.append((member.machine.borrower_id, "lost", granted.shard))

    @property
    def partitions(self) -> int:
        """Of the one storage topic."""
        assert self.slicing is not None
        return self.slicing.partitions[1]

    def check_shared(self) -> None:
        """Every stream is lent, all of a shard to one member, and shards within one."""
        assert self.slicing is not None
        owned: dict[int, set[bytes | None]] = {}
        for at in range(self.partitions):
            owned.setdefault(self.slicing.shard_of(stream(at)).number, set()).add(self.holder(at))
        assert all(len(each) == 1 for each in owned.values()), owned
        counts = Counter(next(iter(each)) for each in owned.values())
        assert None not in counts
        shares = [counts[name] for name in self.leader.members]
        assert max(shares) - min(shares) <= 1


@both_protocols
def test_all_streams_of_a_shard_go_to_one_member_and_stay_there_as_others_come_and_go(
    protocol: str,
) -> None:
    group = ShardedGroup(protocol, 12, 4)
    group.join(A)
    assert group.held(A) == list(range(12))
    group.join(B)
    assert group.shares(A, B) == [6, 6]
    group.join(C, D)
    assert group.shares(A, B, C, D) == [3, 3, 3, 3]
    group.check_shared()
    kept = {name: group.held(name) for name in (A, B, C)}
    group.close(D)
    group.pass_ms(250)
    assert sum(len(set(kept[name]) - set(group.held(name))) for name in kept) == 0
    assert sorted(group.shares(A, B, C)) == [3, 3, 6]


@both_protocols
def test_members_beyond_the_shards_have_nothing(protocol: str) -> None:
    group = ShardedGroup(protocol, 12, 2)
    group.join(A, B, C)
    assert sorted(group.shares(A, B, C)) == [0, 6, 6]


@both_protocols
def test_another_count_moves_only_what_changes_its_owner(protocol: str) -> None:
    group = ShardedGroup(protocol, 12, 3)
    group.join(A, B, C)
    epochs = {at: group.leader.streams[stream(at)].grant_epoch for at in range(12)}
    group.set_count(1, 6)
    group.pass_ms(500)
    assert group.concluded == [1]
    assert {at: group.leader.streams[stream(at)].grant_epoch for at in range(12)} == epochs
    group.set_count(2, 4)
    group.set_count(3, 5)
    group.pass_ms(500)
    group.check_shared()
    assert group.concluded == [1, 2, 3]
    moved = [at for at in range(12) if group.leader.streams[stream(at)].grant_epoch > epochs[at]]
    assert 0 < len(moved) < 12


@both_protocols
def test_a_count_is_done_only_once_every_shard_is_where_it_is_to_be(protocol: str) -> None:
    group = ShardedGroup(protocol, 4, 1)
    group.join(A, B)
    owner = A if group.held(A) else B
    group.members[owner].holding = True
    group.set_count(1, 2)
    group.pass_ms(300)
    assert group.concluded == []
    group.give_back(owner)
    group.pass_ms(300)
    assert group.concluded == [1]
    group.check_shared()


@both_protocols
def test_who_keeps_state_by_shard_gives_all_back_at_another_count_and_is_told_anew(
    protocol: str,
) -> None:
    group = ShardedGroup(protocol, 12, 3)
    group.join(A, B, C, by_shard=True)
    before = dict(group.assigned[A])
    assert all(shard.of == 3 for shard in before)
    group.told.clear()
    group.set_count(1, 6)
    group.pass_ms(500)
    group.check_shared()
    assert group.concluded == [1]
    of_a = [(what, shard.of) for name, what, shard in group.told if name == A]
    assert of_a == [("lost", 3), ("assigned", 6), ("assigned", 6)]


@both_protocols
def test_a_stream_waits_for_the_others_of_its_shard_that_somebody_else_still_has(
    protocol: str,
) -> None:
    group = ShardedGroup(protocol, 4, 2)
    group.join(A, by_shard=True)
    group.members[A].holding = True
    group.join(B, by_shard=True)
    revoked = list(group.members[A].revoked)
    assert len(revoked) == 2
    last = group.report(A, revoked[0])
    group.tell(A, borrower_events.Reported((last,), group.now_ms, final=True))
    assert group.held(B) == []
    group.give_back(A)
    group.pass_ms(50)
    assert group.held(B) == sorted(each.partition for each in revoked)


@both_protocols
def test_a_frozen_member_keeps_its_shards_until_its_lease_is_over_and_is_below_the_next_epoch(
    protocol: str,
) -> None:
    group = ShardedGroup(protocol, 4, 2)
    group.join(A, B, by_shard=True)
    had = {each: of.shard_epoch for each, of in group.members[A].granted.items()}
    group.members[A].frozen = True
    group.members[A].over = None
    group.pass_ms(group.lease_ms // 2)
    assert len(group.held(B)) == 2
    group.members[A].granted.clear()  # what it would still write is fenced by its epoch
    group.pass_ms(2 * group.lease_ms)
    assert len(group.held(B)) == 4
    has = group.members[B].granted
    assert all(has[each].shard_epoch > epoch for each, epoch in had.items())


@both_protocols
def test_a_new_leader_takes_back_what_members_have_by_shards_that_nobody_knows(
    protocol: str,
) -> None:
    group = ShardedGroup(protocol, 6, 3)
    group.join(A, B, by_shard=True)
    group.slicing = Slicing(6, {1: 6})
    group.take_over()
    group.pass_ms(3 * group.lease_ms)
    group.check_shared()
    assert all(
        of.shard is not None and of.shard.of == 6
        for name in (A, B)
        for of in group.members[name].granted.values()
    )


@both_protocols
def test_a_transfer_takes_all_of_the_shard_and_pins_it(protocol: str) -> None:
    group = ShardedGroup(protocol, 6, 3)
    group.join(A, B)
    giver = group.holder(0)
    assert giver is not None
    taker = B if giver == A else A
    assert group.ask(TransferGrant(1, stream(0), taker, session_of(taker))) == [1]
    assert {group.holder(0), group.holder(1)} == {taker}
    assert {group.pinned_to(0), group.pinned_to(1)} == {session_of(taker)}
    group.ask(Unpin(2, stream(1), session_of(taker)))
    group.pass_ms(100)
    assert {group.pinned_to(0), group.pinned_to(1)} == {None}


def test_streams_of_a_new_storage_topic_go_where_their_shard_is() -> None:
    group = ShardedGroup("borrow", 4, 4)
    group.join(A, B)
    assert group.slicing is not None
    group.slicing = Slicing(4, {1: 4, 2: 8})
    born = tuple(PresentStream(StreamId(2, at), None) for at in range(8))
    for each in born:
        group.rows[each.stream] = group.rows[stream(0)].__class__(
            each.stream, group.rows[stream(0)].progress, 10, 100, None
        )
    group.feed(StreamsChanged(group.now_ms, born, slicing=group.slicing))
    group.pass_ms(100)
    for at in range(8):
        lent = group.leader.streams[StreamId(2, at)]
        assert lent.state is StreamState.GRANTED
        assert lent.holder == group.holder(at // 2)


ACTS = st.lists(
    st.tuples(
        st.sampled_from(["join", "join by shard", "leave", "close", "freeze", "thaw", "count"]),
        st.integers(0, 5),
        st.integers(1, 12),
    ),
    max_size=14,
)


class Played:
    """What happens to a group, one act after the other."""

    def __init__(self, group: ShardedGroup) -> None:
        self.group = group

    def act(self, number: int, act: str, who: int, count: int) -> None:
        """One of them, and some time."""
        group = self.group
        names = [name for name, each in group.members.items() if not each.over]
        if act == "count":
            group.set_count(number, count)
        elif act == "thaw":
            self.thaw()
        elif act.startswith("join") and len(names) < 6:
            group.begin(b"m%d" % number, by_shard=act.endswith("shard"))
        elif names:
            self._of_member(act, names[who % len(names)])
        group.pass_ms(who * 100)
        for each in group.members.values():
            if each.frozen and not self._holds(each):
                # Its lease is over, so it hands out nothing more, by its own clock.
                each.granted.clear()

    def thaw(self) -> None:
        """Everybody hears again."""
        for each in self.group.members.values():
            each.frozen = False

    def _of_member(self, act: str, name: bytes) -> None:
        member = self.group.members[name]
        if act == "leave" and not member.frozen:
            self.group.leave(name)
        elif act == "close":
            member.granted.clear()
            self.group.close(name)
        elif act == "freeze":
            member.frozen = True

    def _holds(self, member: PlayedMember) -> bool:
        name = member.machine.borrower_id
        streams = self.group.leader.streams.values()
        return any(lent.holder == name and lent.state in HELD for lent in streams)


@both_protocols
@given(acts=ACTS)
def test_whatever_happens_nobody_else_is_given_a_shard_and_epochs_rise(
    protocol: str, acts: list[tuple[str, int, int]]
) -> None:
    group = ShardedGroup(protocol, 12, 4)
    group.join(A)
    played = Played(group)
    for number, (act, who, count) in enumerate(acts, start=1):
        played.act(number, act, who, count)
    played.thaw()
    group.pass_ms(4 * group.lease_ms)
    if group.leader.members:
        group.check_shared()


@both_protocols
def test_a_stream_that_goes_with_its_topic_holds_up_no_other_of_its_shard(protocol: str) -> None:
    group = ShardedGroup(protocol, 4, 2)
    group.join(A, by_shard=True)
    group.gone(0)
    group.join(B, by_shard=True)
    assert sorted([*group.held(A), *group.held(B)]) == [1, 2, 3]
    assert {1} in (set(group.held(A)), set(group.held(B)))


@both_protocols
def test_of_pins_that_another_count_brings_into_one_shard_the_first_counts(protocol: str) -> None:
    group = ShardedGroup(protocol, 4, 4)
    group.join(A, B, C)
    group.ask(TransferGrant(1, stream(0), A, session_of(A)))
    group.ask(TransferGrant(2, stream(1), B, session_of(B)))
    group.pass_ms(100)
    group.set_count(3, 2)
    group.pass_ms(500)
    assert {group.holder(0), group.holder(1)} == {A}
    assert (group.pinned_to(0), group.pinned_to(1)) == (session_of(A), None)
