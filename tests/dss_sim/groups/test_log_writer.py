"""Group commit on a disk that fails, seen by a producer and by the history."""

from dataclasses import replace

import pytest

from dss_core.errors import DiskFull, StorageTopicSealed, StreamNotFound
from dss_core.ids import StreamId
from dss_sim.groups.history import (
    Committed,
    Damaged,
    Event,
    HandedOut,
    Lost,
    Published,
    Stored,
    Unpublished,
)
from dss_sim.groups.log_rules import LogRules
from dss_sim.groups.log_writer import Asked
from dss_sim.groups.log_writer import Outcome as Answered
from dss_sim.groups.plan import Dies, Plan, Timed
from dss_sim.groups.run import Outcome, run
from dss_sim.groups.scenarios import SCENARIOS
from dss_sim.groups.topic_file import CEILING_OFFSETS, TopicFile
from dss_sim.groups.world import World
from dssd.log.recent_sequences import FirstAnswer

STREAM = StreamId(1, 0)
ME = (1).to_bytes(16)
"""The id of the world's first producer."""
KEYS = ("a", None)
"""Of the two records of each frame."""


def plan_of_a_script() -> Plan:
    """One topic of two streams, one group, one member."""
    return SCENARIOS[0].plan


def world_of(os_topics: frozenset[int] = frozenset()) -> World:
    """A small world in which nobody has begun, and nothing is planned."""
    return World(replace(plan_of_a_script(), timed=(), os_topics=os_topics))


def pass_time(world: World, span_us: int) -> None:
    until_us = world.schedule.now_us + span_us
    passed: list[None] = []
    world.schedule.after(span_us, lambda: passed.append(None))
    while not passed:
        world.step()
    assert world.schedule.now_us == until_us


class Asker:
    """Asks for frames of two records, and hears."""

    def __init__(self, world: World) -> None:
        self.heard: list[tuple[int, Answered, bool]] = []
        self._world = world

    def ask(self, *sequences: int, stream: StreamId = STREAM) -> None:
        for sequence in sequences:

            def answered(outcome: Answered, repeated: bool, sequence: int = sequence) -> None:
                self.heard.append((sequence, outcome, repeated))

            self._world.writer.append(Asked(stream, 1, ME, sequence, sequence, KEYS, answered))

    def bases(self) -> list[int | str]:
        return [
            outcome.base_offset if isinstance(outcome, FirstAnswer) else type(outcome).__name__
            for _, outcome, _ in self.heard
        ]


@pytest.fixture
def world() -> World:
    return world_of()


@pytest.fixture
def asker(world: World) -> Asker:
    return Asker(world)


def told(world: World, kind: type) -> list[object]:
    return [event for event in world.history if isinstance(event, kind)]


def test_nothing_is_seen_or_answered_before_it_is_synced(world: World, asker: Asker) -> None:
    asker.ask(0)
    assert (asker.heard, told(world, Stored), world.log.bounds(STREAM).end) == ([], [], 0)
    pass_time(world, 5_000)
    assert asker.bases() == [0]
    assert world.log.bounds(STREAM).end == 2


def test_what_comes_during_a_sync_is_the_next_batch_and_a_repeat_gets_its_first_answer(
    world: World, asker: Asker
) -> None:
    asker.ask(0, 1, 0)
    pass_time(world, 10_000)
    assert asker.bases() == [0, 2, 0]
    assert [repeated for _, _, repeated in asker.heard] == [False, False, True]
    assert len(told(world, Stored)) == 2


def test_on_a_full_disk_all_of_a_batch_is_refused_and_later_it_goes_on(
    world: World, asker: Asker
) -> None:
    world.writer.full_until_us = 6_000
    asker.ask(0, 0)
    pass_time(world, 5_000)
    assert asker.bases() == ["DiskFull", "DiskFull"]
    pass_time(world, 5_000)
    asker.ask(0)
    pass_time(world, 5_000)
    assert asker.bases()[2:] == [0]
    assert isinstance(asker.heard[0][1], DiskFull)


def test_after_a_failed_sync_nothing_is_answered_and_the_daemon_starts_anew(
    world: World, asker: Asker
) -> None:
    world.writer.sync_fails = True
    asker.ask(0)
    pass_time(world, 5_000)
    assert asker.heard == []
    assert not world.writer.up
    pass_time(world, 400_000)
    assert world.writer.up
    asker.ask(0)
    pass_time(world, 5_000)
    assert asker.bases() == [0]


@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("power", [False, True])
def test_a_daemon_that_dies_in_a_batch_answers_nobody_and_a_repeat_is_stored_once(
    world: World, asker: Asker, step: int, power: bool
) -> None:
    world.writer.dies = Dies(step, power)
    asker.ask(0)
    pass_time(world, 400_000)
    assert asker.heard == []
    asker.ask(0)
    pass_time(world, 5_000)
    assert asker.bases() == [0]
    assert len(told(world, Stored)) == 1


def test_a_seal_waits_for_the_batch_under_way(world: World, asker: Asker) -> None:
    sealed: list[int] = []
    asker.ask(0)
    world.writer.seal(1, lambda: sealed.append(world.log.bounds(STREAM).end))
    assert sealed == []
    asker.ask(1)
    pass_time(world, 10_000)
    assert sealed == [2]
    assert isinstance(asker.heard[1][1], StorageTopicSealed)
    asker.ask(0)
    assert asker.heard[2][2], "a repeat is known before it is refused"


def test_of_a_topic_that_is_gone_nothing_is_stored(world: World, asker: Asker) -> None:
    asker.ask(0)
    world.writer.remove([1])
    pass_time(world, 5_000)
    assert isinstance(asker.heard[0][1], StreamNotFound)
    assert told(world, Stored) == []


def test_rot_is_told_and_hides_the_frames(world: World, asker: Asker) -> None:
    asker.ask(0, 1)
    pass_time(world, 10_000)
    world.writer.close()
    world.writer.rot(STREAM, 1, 1, heads=False, marks=False)
    assert told(world, Damaged) == [Damaged(world.schedule.now_us, "t1/0/0", 2, 4)]
    assert world.log.frames(STREAM) == [(0, 2)]


def test_an_os_record_is_seen_before_it_is_durable_and_its_offset_never_given_again() -> None:
    world = world_of(os_topics=frozenset({0}))
    asker = Asker(world)
    asker.ask(0)
    pass_time(world, 10_000)
    asker.ask(1)
    assert asker.bases() == [0, 2], "its ceiling is high enough"
    pass_time(world, 10_000)
    world.crash_daemon(power=True)
    pass_time(world, 400_000)
    (lost,) = told(world, Lost)
    assert isinstance(lost, Lost)
    assert lost.end == 2 + CEILING_OFFSETS
    asker.ask(2)
    pass_time(world, 10_000)
    assert asker.bases()[2:] == [2 + CEILING_OFFSETS]


def test_a_full_disk_refuses_producers_while_acknowledgements_are_stored() -> None:
    script = (
        Timed(10_000, "begin", 0, 0),
        *(Timed(200_000 + 10_000 * number, "append", 0, 2) for number in range(8)),
        Timed(285_000, "fill_disk", 0, 500_000),
        Timed(300_000, "append", 0, 2),
    )
    history = run(replace(plan_of_a_script(), timed=script, credit_records=2)).history
    refused = [event.at_us for event in history if isinstance(event, Unpublished)]
    assert refused
    assert any(
        isinstance(event, Committed) and refused[0] < event.at_us < 785_000 for event in history
    )
    last = [event for event in history if isinstance(event, Published)][-1]
    assert last.at_us > 785_000


OS_LOSES_POWER = tuple(
    Timed(at_ms * 1_000, kind, 0, amount)
    for at_ms, kind, amount in [
        (10, "begin", 0),
        *((300 + 40 * number, "append", 2) for number in range(6)),
        (800, "lose_power", 0),
        *((1_500 + 40 * number, "append", 2) for number in range(3)),
    ]
)


@pytest.fixture
def without_ceilings(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log that shows records before they are durable, and goes on where its frames end."""

    def wants_sync(file: TopicFile) -> bool:
        return file.durability == "sync" and file.visible < len(file.frames)

    monkeypatch.setattr(TopicFile, "wants_sync", wants_sync)
    monkeypatch.setattr(TopicFile, "low_ceilings", lambda file: {})


def first_that_loses() -> Outcome:
    """A run in which records go with the machine after a group has acknowledged them."""
    plan = replace(plan_of_a_script(), os_topics=frozenset({0}), timed=OS_LOSES_POWER)
    runs = (run(replace(plan, seed=seed)) for seed in range(50))
    return next(one for one in runs if any(isinstance(event, Lost) for event in one.history))


def after_the_loss(outcome: Outcome, kind: type[Event]) -> list[Event]:
    lost = next(at for at, event in enumerate(outcome.history) if isinstance(event, Lost))
    return [event for event in outcome.history[lost:] if isinstance(event, kind)]


def test_with_ceilings_what_is_stored_after_a_loss_of_power_is_handed_out() -> None:
    outcome = first_that_loses()
    assert outcome.violation is None
    assert len(after_the_loss(outcome, Stored)) == 3
    assert len(after_the_loss(outcome, HandedOut)) >= 6


@pytest.mark.usefixtures("without_ceilings")
def test_without_ceilings_offsets_are_given_again() -> None:
    violation = first_that_loses().violation
    assert violation is not None
    assert violation.invariant == "S8"


@pytest.mark.usefixtures("without_ceilings")
def test_without_ceilings_a_group_skips_new_records_in_silence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def stored(rules: LogRules, event: Stored) -> None:
        rules.ends[event.stream] = max(rules.end(event.stream), event.base + event.records)

    monkeypatch.setattr(LogRules, "stored", stored)
    monkeypatch.setattr(LogRules, "published", lambda rules, event: None)
    outcome = first_that_loses()
    assert outcome.violation is None, "nobody else would notice"
    assert len(after_the_loss(outcome, Stored)) == 3
    assert after_the_loss(outcome, HandedOut) == []
