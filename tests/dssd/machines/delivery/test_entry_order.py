"""Records that went on and on while nobody reported it: each is in one place, the last."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dss_core.lane import DEAD, MAIN, RETRY
from dss_core.progress import Progress, normalised
from dssd.machines.delivery.entry_order import EntryOrder
from dssd.machines.delivery.events import Entry
from dssd.machines.delivery.unreported import Unreported, unreported_of
from dssd.machines.queues import RetryPolicy
from support.played_lane import POLICY, Kept, PlayedLane
from support.proof_share import share

RECORDS = 4
"""The last one never failed."""
ORDERED = replace(POLICY, ordered=True, blocks=True)


@dataclass(frozen=True)
class Chains:
    """Where records went, one after the other; who held the lane told of the first so many."""

    steps: tuple[tuple[int, int], ...]
    """Which record, and to which level."""
    told: int
    discarded: tuple[int, ...]
    """Of the dead letters that an operator saw then, by their numbers."""


@st.composite
def chains(draw: st.DrawFn) -> Chains:
    at = [MAIN] * RECORDS
    steps: list[tuple[int, int]] = []
    for record in draw(st.lists(st.integers(0, RECORDS - 2), max_size=24)):
        # A dead letter can only be brought back.
        at[record] = RETRY if at[record] == DEAD else draw(st.sampled_from([RETRY, DEAD]))
        steps.append((record, at[record]))
    told = draw(st.integers(0, len(steps)))
    return Chains(tuple(steps), told, tuple(draw(st.lists(st.integers(0, 5), max_size=2))))


def filled(chosen: Chains, policy: RetryPolicy, keys: Sequence[int]) -> tuple[PlayedLane, set[int]]:
    """A lane whose queues hold that, not yet lent; and which records were given up."""
    lane = PlayedLane(RECORDS, policy, keys)
    places = [(MAIN, at) for at in range(RECORDS)]
    done: dict[int, list[int]] = {MAIN: [], RETRY: [], DEAD: []}
    for number, (record, level) in enumerate(chosen.steps):
        source, queue = places[record], lane.queues[level]
        key = keys[record] if keys else 0
        queue.append(Kept(Entry(len(queue), 0, 1, *source, 10, record, key), record, "refused", ""))
        places[record] = level, len(queue) - 1
        if number < chosen.told:
            done[source[0]].append(source[1])
    told = [to for _, to in chosen.steps[: chosen.told]]
    progress = {
        level: Progress(0).with_acked(normalised((at, at + 1) for at in each))
        for level, each in done.items()
    }
    retry, dead = (
        replace(queue, progress=progress[level], applied_end=told.count(level))
        for level, queue in zip((RETRY, DEAD), lane.saved.queues, strict=True)
    )
    seen = [at for at in range(len(lane.queues[DEAD])) if not progress[DEAD].is_acked(at)]
    named = {seen[each % len(seen)] for each in chosen.discarded} if seen else set()
    dead = dead.discard(7, normalised((at, at + 1) for at in named))
    lane.saved = replace(lane.saved, progress=progress[MAIN], queues=(retry, dead))
    return lane, {lane.queues[DEAD][at].origin for at in named}


@pytest.mark.parametrize(
    ("policy", "keys"), [(POLICY, ()), (ORDERED, (5, 6, 5, 5)), (ORDERED, (5, 5, 5, 5))]
)
@given(chosen=chains())
@settings(max_examples=share(60, 3_000))
def test_a_record_is_where_it_went_last_or_nowhere_if_it_was_discarded_anywhere_on_its_way(
    policy: RetryPolicy, keys: Sequence[int], chosen: Chains
) -> None:
    lane, given_up = filled(chosen, policy, keys)
    lane.lend()
    last = dict(chosen.steps)
    for record, levels in enumerate(lane.places()):
        # In an ordered group it may have gone on at once, behind its key.
        at = levels if policy.ordered and levels else [last.get(record, MAIN)]
        assert (levels, len(levels)) == (([], 0) if record in given_up else (at, 1))
    is_any_dead = any(at == DEAD for record, at in last.items() if record not in given_up)
    taken: list[int] = []
    dead_letters = len(lane.queues[DEAD])
    for _ in range(20):
        for level, offset in sorted(lane.out):
            taken.append(offset if level == MAIN else lane.queues[level][offset].origin)
            lane.ack(level, offset)
        lane.tick(60_000)
        lane.save()
        _, _, dead = lane.states()
        if left := dead.progress.unacked(len(lane.queues[DEAD])):
            lane.redrive(left[0][0], left[-1][1])
    assert sorted(taken) == [at for at in range(RECORDS) if at not in given_up]
    # What was given up holds up no key.
    assert is_any_dead or len(lane.queues[DEAD]) == dead_letters


@given(chosen=chains())
@settings(max_examples=share(60, 3_000))
def test_who_never_holds_the_lane_comes_to_the_same(chosen: Chains) -> None:
    lane, given_up = filled(chosen, POLICY, ())
    ends = {level: len(queue) for level, queue in lane.queues.items()}
    unreported = Unreported(lane.saved.progress, lane.saved.queues)
    for level, entry in told(unreported_of(lane.saved.queues, ends), lane, step=3):
        unreported.take(level, entry)
    places: list[list[int]] = [[] for _ in range(RECORDS)]
    for level, queue in lane.queues.items():
        done = Progress(0).with_acked(unreported.done(level))
        for kept in queue:
            places[kept.origin] += [] if done.is_acked(kept.entry.offset) else [level]
    for record, to in dict(chosen.steps).items():
        assert places[record] == ([] if record in given_up else [to])


def told(order: EntryOrder, lane: PlayedLane, step: int) -> list[tuple[int, Entry]]:
    """What is told, where so many entries are read at a time."""
    found: list[tuple[int, Entry]] = []
    while (wanted := order.to_read()) is not None:
        level, at = wanted
        read = [kept.entry for kept in lane.queues[level][at : at + step]]
        for each in order.take(level, read, at + len(read)):
            found += [(each.level, entry) for entry in each.entries]
    return found


@given(chosen=chains(), step=st.integers(1, 5))
def test_every_entry_is_told_once_in_the_order_of_its_queue_and_behind_its_source(
    chosen: Chains, step: int
) -> None:
    lane, _ = filled(chosen, POLICY, ())
    ends = {level: len(queue) for level, queue in lane.queues.items()}
    found = told(EntryOrder((0, ends[RETRY]), (0, ends[DEAD]), 0), lane, step)
    places = [(level, entry.offset) for level, entry in found]
    for level in (RETRY, DEAD):
        assert [at for of, at in places if of == level] == list(range(ends[level]))
    for number, (_, entry) in enumerate(found):
        source = entry.source_level, entry.source_offset
        assert source[0] == MAIN or source in places[:number]
