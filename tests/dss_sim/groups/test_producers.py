"""What a producer of the world does, and that the client's queue may do it in its place."""

from dataclasses import replace
from random import Random

import pytest

from dss_client._producer_queue import FrameQueue as ClientFrameQueue
from dss_core.ids import StreamId
from dss_sim.groups import producers
from dss_sim.groups.history import Event, Published, Stored, Unpublished
from dss_sim.groups.log_rules import LogRules
from dss_sim.groups.plan import LOG_FAULTS, Plan, Timed, plan_of
from dss_sim.groups.producers import Producer
from dss_sim.groups.run import run, run_seed
from dss_sim.groups.scenarios import SCENARIOS
from dss_sim.groups.timed_events import happen
from dss_sim.groups.world import World
from dssd.log.refused_firsts import RefusedFirsts
from dssd.rpc.producer_fencing import ProducerFencing
from support.proof_share import only_in_proof, share

STREAM = StreamId(1, 0)


@pytest.fixture
def world() -> World:
    return World(replace(SCENARIOS[0].plan, timed=(), producers=2))


@pytest.fixture
def producer(world: World) -> Producer:
    return world.producers[0]


@pytest.fixture(params=share(["the client's"], ["ours", "the client's"]))
def queue(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What producers keep their frames in."""
    if request.param != "ours":
        take_the_clients(monkeypatch)


def take_the_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producers, "new_queue", lambda stream: ClientFrameQueue(stream.partition))


def pass_time(world: World, span_us: int) -> None:
    passed: list[None] = []
    world.schedule.after(span_us, lambda: passed.append(None))
    while not passed:
        world.step()


def told(world: World, kind: type[Event]) -> list[tuple[int, int]]:
    """Sequence and place of each."""
    return [
        (event.sequence, event.base)
        for event in world.history
        if isinstance(event, Stored | Published) and isinstance(event, kind)
    ]


def test_frames_are_stored_in_order_and_answered(world: World, producer: Producer) -> None:
    for records in range(1, 9):
        producer.publish(STREAM, records)
    assert not producer.settled
    pass_time(world, 50_000)
    assert producer.settled
    assert told(world, Published) == told(world, Stored)
    assert [sequence for sequence, _ in told(world, Stored)] == list(range(8))


def test_what_is_sent_into_a_cut_is_sent_again_and_stored_once(
    world: World, producer: Producer
) -> None:
    producer.publish(STREAM, 1)
    producer.cut(200_000)
    producer.publish(STREAM, 2)
    pass_time(world, 100_000)
    assert told(world, Stored) == [(0, 0)], "the first had come through"
    assert told(world, Published) == []
    pass_time(world, 600_000)
    assert told(world, Stored) == told(world, Published) == [(0, 0), (1, 1)]
    assert [event.repeated for event in world.history if isinstance(event, Published)] == [
        True,
        False,
    ]


def test_records_that_found_no_room_are_published_again_later(
    world: World, producer: Producer
) -> None:
    world.writer.full_until_us = 100_000
    producer.publish(STREAM, 1)
    pass_time(world, 50_000)
    assert any(isinstance(event, Unpublished) for event in world.history)
    assert not producer.settled
    pass_time(world, 500_000)
    assert told(world, Published) == [(0, 0)]


def test_who_is_killed_leaves_what_it_sent_behind_and_the_next_one_has_another_name(
    world: World, producer: Producer
) -> None:
    producer.publish(STREAM, 1)
    before = producer.name
    producer.kill(10_000)
    pass_time(world, 50_000)
    producer.publish(STREAM, 1)
    pass_time(world, 50_000)
    assert producer.name != before
    assert [event.producer for event in world.history if isinstance(event, Stored)] == [
        before,
        producer.name,
    ]
    assert told(world, Stored) == [(0, 0), (0, 1)]


def test_producers_go_on_after_the_daemon_died(world: World, producer: Producer) -> None:
    producer.publish(STREAM, 1)
    world.crash_daemon()
    pass_time(world, 2_000_000)
    assert told(world, Published) == [(0, 0)]


def test_a_sealed_stream_takes_no_more_and_nobody_waits(world: World, producer: Producer) -> None:
    world.writer.seal(1, lambda: None)
    producer.publish(STREAM, 1)
    pass_time(world, 50_000)
    producer.publish(STREAM, 1)
    assert producer.settled
    assert told(world, Stored) == []


def test_what_waits_for_a_topic_that_moves_goes_on_in_the_new_streams(
    world: World, producer: Producer
) -> None:
    for records in range(1, 9):
        producer.publish(STREAM, records)
    happen(world, Timed(0, "switch_topic", 0, 3))
    producer.publish(StreamId(101, 2), 9)
    pass_time(world, 500_000)
    assert producer.settled
    stored = [event for event in world.history if isinstance(event, Stored)]
    ends = {event.content: event.stream for event in stored}
    assert ends.keys() == set(range(1, 10))
    assert {stream.rpartition("/")[0] for stream in ends.values()} == {"t1/0", "t1/1"}
    assert ends[9].startswith("t1/1/")
    judged = LogRules()
    for event in stored:
        judged.stored(event)


def hard_on_requests(seed: int) -> Plan:
    """Bursts into a disk that is full now and then, over connections that are slow and break."""
    chance = Random(seed)
    timed = [Timed(10_000, "begin", 0, 0)]
    timed += [Timed(chance.randrange(300_000, 1_800_000), "burst", 0, 0) for _ in range(6)]
    for _ in range(5):
        full_us = chance.randrange(300_000, 1_900_000)
        timed.append(Timed(full_us, "fill_disk", 0, chance.randrange(20_000, 200_000)))
        cut_us = full_us + chance.randrange(0, 100_000)
        timed.append(Timed(cut_us, "cut_producer", 0, chance.randrange(1_000, 50_000)))
    return replace(
        SCENARIOS[0].plan,
        seed=seed,
        timed=tuple(sorted(timed, key=lambda each: each.at_us)),
        rates={"late_request": 0.3, "slow_sync": 0.1},
        heal_us=2_500_000,
    )


def hard_on_moves(seed: int) -> Plan:
    """The same in three streams, while the topic moves in the midst of bursts."""
    plan, chance = hard_on_requests(seed), Random(f"{seed}/moves")
    bursts = [timed for timed in plan.timed if timed.kind == "burst"]
    more = [replace(timed, who=7 * at) for timed in bursts for at in (1, 2)]
    moves = [
        Timed(timed.at_us + chance.randrange(3_000), "switch_topic", 0, chance.randint(1, 4))
        for timed in chance.sample(bursts, 3)
    ]
    timed = sorted([*plan.timed, *more, *moves], key=lambda each: each.at_us)
    return replace(plan, timed=tuple(timed), partitions=(3,))


MOVED = (67, *range(share(12, 100)))
"""Seeds of such plans. In the first one a full disk refused the first frames of a producer and took
those behind them, and what became of the first ones was said to be unknown."""


@pytest.mark.usefixtures("queue")
def test_records_of_a_key_stay_in_order_while_their_topic_moves() -> None:
    found = [run(hard_on_moves(seed)).violation for seed in MOVED]
    assert [str(each) for each in found if each is not None] == []


@only_in_proof
def test_a_producer_that_does_not_wait_for_its_answers_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def at_once(self: Producer, storage_topic_id: int) -> None:
        if storage_topic_id in self._held:
            self._described(self._call, storage_topic_id)

    monkeypatch.setattr(Producer, "_follow", at_once)
    found = [run(hard_on_moves(seed)).violation for seed in MOVED]
    assert {each.invariant for each in found if each is not None} == {"S26"}


LATE = range(160, 160 + share(18, 60))
"""Seeds of such plans, in some of which a record was stored twice."""


@pytest.mark.usefixtures("queue")
def test_what_a_dead_connection_still_brings_is_stored_once() -> None:
    found = [run(hard_on_requests(seed)).violation for seed in LATE]
    assert [str(each) for each in found if each is not None] == []


def hard_on_daemons(seed: int) -> Plan:
    """The same, and the daemon dies now and then while the disk is full, or soon after."""
    plan, chance = hard_on_requests(seed), Random(f"{seed}/deaths")
    full = [timed for timed in plan.timed if timed.kind == "fill_disk"]
    kinds = ("crash_daemon", "fail_sync", "die_writing")
    deaths = [
        Timed(
            timed.at_us + chance.randrange(60_000),
            chance.choice(kinds),
            chance.randrange(65_536),
            chance.randrange(50_000, 400_000),
        )
        for timed in chance.sample(full, 3)
    ]
    timed = sorted([*plan.timed, *deaths], key=lambda each: each.at_us)
    return replace(plan, timed=tuple(timed), heal_us=3_500_000)


DYING = (138, 411, *range(share(6, 200)))
"""Seeds of such plans. In the first two a frame was refused as one of which nobody knows, because
the one before it had been refused by the life of the daemon before."""


@pytest.mark.usefixtures("queue")
def test_what_is_refused_as_the_daemon_dies_is_stored_in_order_or_refused_for_certain() -> None:
    found = [run(hard_on_daemons(seed)).violation for seed in DYING]
    assert [str(each) for each in found if each is not None] == []


def test_where_any_frame_may_follow_a_refused_first_one_that_one_is_too_old_to_tell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(RefusedFirsts, "note", lambda *given: None)
    found = run(hard_on_moves(67)).violation
    assert found is not None
    assert found.invariant == "S7"


DIED_BEHIND_A_GAP = (30980, 31103, 100329)
"""Seeds in which a daemon died while frames came back for a gap: it took those behind them first,
so records of a key were out of order."""


@pytest.mark.usefixtures("queue")
@pytest.mark.parametrize("seed", DIED_BEHIND_A_GAP[:: share(3, 1)])
def test_what_came_back_for_a_gap_stays_in_order_over_a_death_of_the_daemon(
    seed: int,
) -> None:
    assert run_seed(seed).violation is None


def test_without_a_fence_between_connections_a_record_is_stored_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ProducerFencing, "check", lambda *given: None)
    found = [run(hard_on_requests(seed)).violation for seed in LATE]
    assert {each.invariant for each in found if each is not None} == {"S7"}


@only_in_proof
def test_the_frame_queue_of_the_client_keeps_every_invariant(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    take_the_clients(monkeypatch)
    hard = [
        seed
        for seed in range(600)
        if len({timed.kind for timed in plan_of(seed).timed} & LOG_FAULTS.keys()) > 2
    ]
    assert len(hard) > 50
    failed = [(seed, run_seed(seed).violation) for seed in hard]
    assert [each for each in failed if each[1] is not None] == []


def test_a_topic_grows_by_no_storage_topic_that_another_had(world: World) -> None:
    gone = world.create_topic(1)
    topics = world.catalogue.topics
    which = list(topics).index(gone.name)
    happen(world, Timed(0, "grow_topic", which, 1))
    had = {part.storage_topic_id for part in topics[gone.name].storage_topics}
    happen(world, Timed(0, "remove_topic", which, 0))
    happen(world, Timed(0, "grow_topic", 0, 1))
    have = {part.storage_topic_id for each in topics.values() for part in each.storage_topics}
    assert gone.name not in topics
    assert not had & have
