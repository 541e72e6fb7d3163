"""Leader and borrowers together over a network with faults; a failing test names its seed."""

import pytest

from dss_core.lane import DEAD
from dssd.machines.borrower import events as borrower_events
from dssd.machines.leader import events as leader_events
from dssd.machines.leader.lent_stream import StreamState
from support.lossy_group import LEASE_MS, RECORDS, World
from support.proof_share import share

SEEDS = range(share(2, 30))
"""`dss_sim.groups` has the same machines under far more faults; here a run is one sentence."""
PROTOCOLS = ("borrow", "lease")


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("seed", SEEDS)
def test_two_members_settle_every_record_over_a_lossy_network(seed: int, protocol: str) -> None:
    world = World(seed, protocol, streams=8, fault_rate=0.2)
    world.start_leader()
    world.join("ann")
    world.run_for(600)
    world.join("bob")
    world.run_until(world.is_settled, within_ms=120_000)
    assert {record for record, count in world.handed_out.items() if count} == {
        (stream, offset) for stream in world.streams for offset in range(RECORDS)
    }
    assert world.unmarked == set()


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("seed", SEEDS)
def test_every_record_comes_once_where_only_the_network_is_slow(seed: int, protocol: str) -> None:
    world = World(seed, protocol, streams=6, fault_rate=0.0)
    world.start_leader()
    world.join("ann")
    world.run_for(400)
    world.join("bob")
    world.run_until(world.is_settled, within_ms=10_000)
    assert max(world.handed_out.values()) == 1


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("seed", SEEDS)
def test_members_end_up_balanced_and_then_nothing_but_pings_is_said(
    seed: int, protocol: str
) -> None:
    world = World(seed, protocol, streams=7, fault_rate=0.2)
    world.start_leader()
    world.join("ann")
    world.join("bob")
    world.run_until(world.is_settled, within_ms=120_000)
    world.fault_rate = 0.0
    world.run_for(3 * LEASE_MS)
    shares = world.shares()
    assert sum(shares.values()) == 7
    assert max(shares.values()) - min(shares.values()) <= 1
    before = world.messages
    world.run_for(LEASE_MS)
    pings_each_way = 2 * 4 * len(shares)
    assert world.messages - before <= pings_each_way + 4


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_member_that_dies_is_replaced_and_what_it_handed_out_is_marked(
    seed: int, protocol: str
) -> None:
    world = World(seed, protocol, streams=6, fault_rate=0.2)
    world.start_leader()
    dead = world.join("ann")
    world.join("bob")
    world.run_for(700)
    dead.die()
    world.feed(leader_events.SessionClosed(b"ann", world.now_ms))
    world.run_until(world.is_settled, within_ms=120_000)
    assert world.unmarked == set()


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_new_leader_adopts_members_and_nothing_is_lost_or_unmarked(
    seed: int, protocol: str
) -> None:
    world = World(seed, protocol, streams=6, fault_rate=0.2)
    world.start_leader()
    world.join("ann")
    world.join("bob")
    world.run_for(900)
    world.leader = None
    world.run_for(200)
    world.start_leader()
    world.run_until(world.is_settled, within_ms=120_000)
    assert world.unmarked == set()


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("seed", SEEDS)
def test_after_a_restart_sessions_get_their_streams_back_and_doubles_are_marked(
    seed: int, protocol: str
) -> None:
    world = World(seed, protocol, streams=6, fault_rate=0.2)
    world.start_leader()
    for name in ("ann", "bob"):
        world.join(name)
    world.run_for(600 + seed % 200)
    for member in tuple(world.members.values()):
        member.die()
    world.leader = None
    world.events.clear()
    world.start_leader(restarted=True)
    for name in ("ann", "bob"):
        world.join(name)
    world.run_until(world.is_settled, within_ms=120_000)
    assert world.unmarked == set()


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("seed", SEEDS)
def test_one_leaves_while_the_other_goes_on(seed: int, protocol: str) -> None:
    world = World(seed, protocol, streams=6, fault_rate=0.2)
    world.start_leader()
    leaver = world.join("ann")
    world.join("bob")
    world.run_for(800)
    leaver.feed(borrower_events.Unsubscribed(world.now_ms))
    world.run_until(lambda: leaver.ended, within_ms=5_100)
    world.run_until(world.is_settled, within_ms=120_000)
    assert world.unmarked == set()
    assert world.leader is not None
    finished = [lent.state for lent in world.leader.streams.values()]
    assert StreamState.REVOKING not in finished


def check_moves(world: World) -> None:
    """Each record was moved once from where it was, and died at most once."""
    for stream, stored in world.stored.items():
        logs = [world.logs[queue] for queue in stored.queues]
        entries = [entry for log in logs for entry in log]
        sources = [(entry.level, entry.source) for entry in entries]
        assert len(set(sources)) == len(sources), f"moved twice in {stream}"
        origins = [entry.origin for entry in logs[DEAD - 1]]
        assert len(set(origins)) == len(origins), f"dead twice in {stream}"
    dead = {(at, each.origin) for at, log in world.logs.items() for each in log if at[0] == 3}
    assert dead, "the test fails too little"


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("seed", SEEDS)
def test_of_records_that_fail_none_is_moved_twice_nor_left_though_holders_die(
    seed: int, protocol: str
) -> None:
    world = World(seed, protocol, streams=6, fault_rate=0.2, failing_rate=0.4, dying_rate=0.05)
    world.start_leader()
    world.join("ann")
    world.join("bob")
    world.run_until(world.is_settled, within_ms=240_000)
    check_moves(world)
    assert world.unmarked == set()


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("seed", SEEDS)
def test_of_records_that_fail_none_is_moved_twice_nor_left_though_leaders_change(
    seed: int, protocol: str
) -> None:
    world = World(seed, protocol, streams=6, fault_rate=0.2, failing_rate=0.4)
    world.start_leader()
    world.join("ann")
    world.join("bob")
    for _ in range(3):
        world.run_for(500)
        world.leader = None
        world.run_for(100)
        world.start_leader()
    world.run_until(world.is_settled, within_ms=240_000)
    check_moves(world)
    assert world.unmarked == set()


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_group_gets_queues_while_members_work_and_keeps_them_while_something_is_in_them(
    seed: int, protocol: str
) -> None:
    world = World(seed, protocol, streams=6, fault_rate=0.2, dying_rate=0.02)
    world.start_leader()
    world.join("ann")
    world.join("bob")
    world.run_for(250)
    world.feed(leader_events.Hold(world.now_ms))
    world.run_until(lambda: bool(world.logs), within_ms=30_000)
    world.run_for(400)
    world.feed(leader_events.Hold(world.now_ms))
    world.run_until(world.is_settled, within_ms=240_000)
    check_moves(world)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_group_loses_queues_while_members_work_and_no_record(seed: int, protocol: str) -> None:
    world = World(seed, protocol, streams=6, fault_rate=0.2, failing_rate=0.001)
    world.start_leader()
    world.join("ann")
    world.join("bob")
    for _ in range(5):
        world.run_for(400)
        if world.logs:
            world.feed(leader_events.Hold(world.now_ms))
    world.run_until(lambda: not world.logs, within_ms=30_000)
    world.run_until(world.is_settled, within_ms=120_000)
    assert world.unmarked == set()
