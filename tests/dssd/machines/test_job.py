"""The machine of a bulk job: every input in every state, and what holds over all of them."""

from dataclasses import replace
from itertools import product
from random import Random

import pytest

from dssd.machines.job import (
    ENDED,
    JOB_LEASE_MS,
    Acquire,
    AnswerFirst,
    Commit,
    Effect,
    EpochNotStored,
    EpochStored,
    GiveUp,
    Input,
    JobGranted,
    JobState,
    Join,
    Lease,
    NotPublished,
    Phase,
    PhaseStored,
    Publish,
    Published,
    Refuse,
    Renew,
    StoreFailed,
    SweepAll,
    SweepChunk,
    SweepEpochsBelow,
    TakeEpoch,
    TellSilent,
    Tick,
    Why,
    step,
)

NEW = JobState(chunks=3, published=0, epoch=0, phase=Phase.ACTIVE)
DRIVEN = replace(NEW, published=1, epoch=2, lease=Lease(b"a", 20_000))
PUBLISHING = replace(DRIVEN, publishing=1)
TAKEN = replace(DRIVEN, lease=None, taking=b"b")
PAUSED = replace(DRIVEN, phase=Phase.PAUSED)
DONE = replace(DRIVEN, phase=Phase.DONE, published=3)
NOW = 1_000

TABLE: list[tuple[JobState, Input, JobState, tuple[Effect, ...]]] = [
    # Taking a job
    (NEW, Acquire(b"a", NOW), replace(NEW, taking=b"a"), (TakeEpoch(1),)),
    (DRIVEN, Acquire(b"b", NOW), DRIVEN, (Refuse(Why.LEASED),)),
    (
        DRIVEN,
        Acquire(b"a", NOW + 7_000),
        replace(DRIVEN, lease=Lease(b"a", NOW + 7_000 + JOB_LEASE_MS)),
        (JobGranted(2),),
    ),
    (DRIVEN, Acquire(b"b", 20_000), TAKEN, (TakeEpoch(3), TellSilent())),
    (
        PUBLISHING,
        Acquire(b"b", 20_000),
        replace(TAKEN, publishing=PUBLISHING.publishing),
        (TakeEpoch(3), TellSilent()),
    ),
    (TAKEN, Acquire(b"c", NOW), TAKEN, (Refuse(Why.LEASED),)),
    (DONE, Acquire(b"b", NOW), DONE, (Refuse(Why.NOT_IN_PHASE),)),
    (
        TAKEN,
        EpochStored(3, NOW),
        replace(TAKEN, epoch=3, taking=None, lease=Lease(b"b", NOW + JOB_LEASE_MS)),
        (JobGranted(3), SweepEpochsBelow(3)),
    ),
    (TAKEN, EpochNotStored(), replace(TAKEN, taking=None), ()),
    (DRIVEN, EpochStored(3, NOW), DRIVEN, ()),
    (
        replace(TAKEN, phase=Phase.CANCELLED),
        EpochStored(3, NOW),
        replace(TAKEN, phase=Phase.CANCELLED, epoch=3, taking=None),
        (Refuse(Why.NOT_IN_PHASE),),
    ),
    # Keeping it
    (
        DRIVEN,
        Renew(2, 9_000),
        replace(DRIVEN, lease=Lease(b"a", 9_000 + JOB_LEASE_MS)),
        (JobGranted(2),),
    ),
    (DRIVEN, Renew(1, NOW), DRIVEN, (Refuse(Why.FENCED),)),
    (TAKEN, Renew(2, NOW), TAKEN, (Refuse(Why.FENCED),)),
    (DONE, Renew(2, NOW), DONE, (Refuse(Why.NOT_IN_PHASE),)),
    (
        replace(DRIVEN, lease=None),
        Renew(2, NOW),
        replace(DRIVEN, lease=Lease(b"", NOW + JOB_LEASE_MS)),
        (JobGranted(2),),
    ),
    (DRIVEN, Tick(19_999), DRIVEN, ()),
    (DRIVEN, Tick(20_000), replace(DRIVEN, lease=None), (TellSilent(),)),
    (DONE, Tick(20_000), replace(DONE, lease=None), ()),
    # Publishing
    (DRIVEN, Commit(1, 2), PUBLISHING, (Publish(1, 2),)),
    (DRIVEN, Commit(0, 2), DRIVEN, (AnswerFirst(0),)),
    (DRIVEN, Commit(2, 2), DRIVEN, (Refuse(Why.OUT_OF_TURN),)),
    (DRIVEN, Commit(3, 2), DRIVEN, (Refuse(Why.NO_CHUNK),)),
    (DRIVEN, Commit(1, 1), DRIVEN, (Refuse(Why.FENCED),)),
    (TAKEN, Commit(1, 2), TAKEN, (Refuse(Why.FENCED),)),
    (PUBLISHING, Commit(1, 2), PUBLISHING, (Join(1),)),
    (PUBLISHING, Commit(2, 2), PUBLISHING, (Refuse(Why.OUT_OF_TURN),)),
    (PAUSED, Commit(1, 2), PAUSED, (Refuse(Why.NOT_IN_PHASE),)),
    (DONE, Commit(2, 2), DONE, (AnswerFirst(2),)),
    (PUBLISHING, Published(1), replace(DRIVEN, published=2), (SweepChunk(1),)),
    (
        replace(PUBLISHING, published=2, publishing=2),
        Published(2),
        replace(DRIVEN, published=3, phase=Phase.DONE),
        (SweepAll(),),
    ),
    (PUBLISHING, NotPublished(1), DRIVEN, ()),
    (DRIVEN, Published(1), DRIVEN, ()),
    # Ends
    (DRIVEN, GiveUp(2), DRIVEN, (StoreFailed(),)),
    (DRIVEN, GiveUp(1), DRIVEN, (Refuse(Why.FENCED),)),
    (DONE, GiveUp(2), DONE, (Refuse(Why.NOT_IN_PHASE),)),
    (DRIVEN, PhaseStored(Phase.PAUSED), PAUSED, ()),
    (PAUSED, PhaseStored(Phase.ACTIVE), DRIVEN, ()),
    (
        PUBLISHING,
        PhaseStored(Phase.CANCELLED),
        replace(PUBLISHING, phase=Phase.CANCELLED),
        (SweepAll(),),
    ),
    (DONE, PhaseStored(Phase.PAUSED), DONE, ()),
]


@pytest.mark.parametrize(("before", "given", "after", "effects"), TABLE)
def test_a_job_does_what_the_table_says(
    before: JobState, given: Input, after: JobState, effects: tuple[Effect, ...]
) -> None:
    assert step(before, given) == (after, effects)


def states() -> list[JobState]:
    leases = (None, Lease(b"a", 20_000))
    every = product(range(3), range(3), Phase, leases, (None, b"b"), (False, True))
    return [
        JobState(2, published, epoch, phase, lease, taking, published if publishes else None)
        for published, epoch, phase, lease, taking, publishes in every
        if not publishes or published < 2
    ]


INPUTS: list[Input] = [
    *(Acquire(token, now) for token in (b"a", b"b") for now in (NOW, 30_000)),
    *(EpochStored(epoch, NOW) for epoch in range(4)),
    EpochNotStored(),
    *(Renew(epoch, NOW) for epoch in range(4)),
    *(Commit(chunk, epoch) for chunk in range(3) for epoch in range(4)),
    *(Published(chunk) for chunk in range(3)),
    *(NotPublished(chunk) for chunk in range(3)),
    *(GiveUp(epoch) for epoch in range(4)),
    *(PhaseStored(phase) for phase in Phase),
    *(Tick(now) for now in (NOW, 30_000)),
]


def test_every_input_has_an_answer_in_every_state_and_nothing_goes_back() -> None:
    for state, given in product(states(), INPUTS):
        after, effects = step(state, given)
        assert after.published >= state.published
        assert after.epoch >= state.epoch
        assert state.phase not in ENDED or after.phase is state.phase
        for effect in effects:
            if isinstance(effect, Publish):
                assert effect.chunk == state.published
                assert effect.epoch == state.epoch
                assert state.phase is Phase.ACTIVE


def test_of_drivers_that_race_each_chunk_is_published_once_and_in_turn() -> None:
    for seed in range(200):
        race(seed)


def race(seed: int) -> None:
    """The store takes epochs and chunks under its conditions; answers come late or never."""
    chance = Random(seed)
    state = replace(NEW, chunks=4)
    stored_epoch, published = 0, list[int]()
    now_ms = 0
    waiting: list[Effect] = []
    while len(published) < 4:
        now_ms += chance.choice((100, 4_000, 16_000))
        choices: list[Input] = [
            Acquire(bytes([chance.randrange(1, 4)]), now_ms),
            Commit(chance.randrange(4), chance.randrange(stored_epoch + 1)),
            Commit(state.published, stored_epoch),
            Tick(now_ms),
            EpochNotStored(),
        ]
        given = chance.choice(choices)
        if waiting and chance.random() < 0.6:
            match waiting.pop(chance.randrange(len(waiting))):
                case TakeEpoch(epoch):
                    stored_epoch = max(stored_epoch, epoch)
                    given = EpochStored(epoch, now_ms)
                case Publish(chunk, epoch):
                    given = NotPublished(chunk)
                    if epoch == stored_epoch:
                        assert chunk == len(published)
                        published.append(chunk)
                        given = Published(chunk)
        state, effects = step(state, given)
        waiting += [one for one in effects if isinstance(one, TakeEpoch | Publish)]
    assert published == [0, 1, 2, 3]
    assert state.published == 4
