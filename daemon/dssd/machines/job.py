"""A bulk job: its chunks, its drivers, and what may be published. Pure.

::

                 Acquire              Commit                    the last Published
    active ──► TakeEpoch ──► lease ──► Publish ──► Published ──► done
       ▲ │                     │
       │ └── paused            └── silent for longer than its lease: another may acquire
       └──────┘
    any of them ──► failed (its driver says so), cancelled (an operator does)

Rules:

1. Chunks are published in the order of their numbers, each once: a repeated commit of a published
   chunk gets the first answer again.
2. Each driver that takes the job gets a higher epoch, which is stored before the driver learns it.
   A driver of a lower epoch publishes nothing.
3. Leases run by the daemon's monotonic clock. A lease only keeps a second driver from disturbing a
   live one; the epoch prevents duplicates.
4. One chunk at a time is being published. A repeated commit of it waits for its outcome.

Invariant: ``step`` is total: each input has an answer in each state. Published chunks stay
published. This module must not know streams, files or rows.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

JOB_LEASE_MS = 15_000
"""How long the driver of a bulk job may be silent: longer than a pause for garbage collection, and
short enough for another driver to go on soon."""


class Phase(StrEnum):
    """How a job stands."""

    ACTIVE = "active"
    PAUSED = "paused"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


ENDED = frozenset({Phase.DONE, Phase.FAILED, Phase.CANCELLED})


@dataclass(frozen=True, slots=True)
class Lease:
    """Who drives the job."""

    token: bytes
    """The token of the call that took it; empty if it was given before a restart of the daemon."""
    until_ms: int


@dataclass(frozen=True, slots=True)
class JobState:
    """The state of a job, as far as it decides anything."""

    chunks: int
    published: int
    epoch: int
    phase: Phase
    lease: Lease | None = None
    taking: bytes | None = None
    """The token for which a higher epoch is being stored."""
    publishing: int | None = None
    """The chunk that is being published."""


# Inputs


@dataclass(frozen=True, slots=True)
class Acquire:
    """A driver wants the job; the token names its call, which it may repeat."""

    token: bytes
    now_ms: int


@dataclass(frozen=True, slots=True)
class EpochStored:
    """The store has the higher epoch."""

    epoch: int
    now_ms: int


@dataclass(frozen=True, slots=True)
class EpochNotStored:
    """The epoch could not be stored."""


@dataclass(frozen=True, slots=True)
class Renew:
    """The driver of an epoch lives."""

    epoch: int
    now_ms: int


@dataclass(frozen=True, slots=True)
class Commit:
    """A driver has staged a chunk."""

    chunk: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Published:
    """The store has the chunk: its records can be read."""

    chunk: int


@dataclass(frozen=True, slots=True)
class NotPublished:
    """Nothing of the chunk was stored."""

    chunk: int


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The driver of an epoch says that the job cannot be done."""

    epoch: int


@dataclass(frozen=True, slots=True)
class PhaseStored:
    """An operator, or a driver that gave up, has changed the phase; the store has it."""

    phase: Phase


@dataclass(frozen=True, slots=True)
class Tick:
    """Time passes."""

    now_ms: int


Input = (
    Acquire
    | EpochStored
    | EpochNotStored
    | Renew
    | Commit
    | Published
    | NotPublished
    | GiveUp
    | PhaseStored
    | Tick
)


# Effects


@dataclass(frozen=True, slots=True)
class TakeEpoch:
    """Store this epoch, then say so."""

    epoch: int


@dataclass(frozen=True, slots=True)
class JobGranted:
    """Answer the driver: the job is its own, under this epoch."""

    epoch: int


@dataclass(frozen=True, slots=True)
class Publish:
    """Check and publish the chunk, if the epoch still counts, then say what became of it."""

    chunk: int
    epoch: int


@dataclass(frozen=True, slots=True)
class AnswerFirst:
    """Repeat the answer that was given when the chunk was published."""

    chunk: int


@dataclass(frozen=True, slots=True)
class Join:
    """Answer with the outcome of the chunk that is being published."""

    chunk: int


@dataclass(frozen=True, slots=True)
class StoreFailed:
    """Store that the job failed, then say so."""


@dataclass(frozen=True, slots=True)
class SweepChunk:
    """Delete what was staged for a chunk."""

    chunk: int


@dataclass(frozen=True, slots=True)
class SweepEpochsBelow:
    """Delete what drivers of lower epochs staged."""

    epoch: int


@dataclass(frozen=True, slots=True)
class SweepAll:
    """Delete all that was staged; nothing is held any more."""


@dataclass(frozen=True, slots=True)
class TellSilent:
    """Tell operators that the driver is silent."""


class Why(StrEnum):
    """Why something is refused."""

    NOT_IN_PHASE = "not in phase"
    LEASED = "leased"
    FENCED = "fenced"
    NO_CHUNK = "no chunk"
    OUT_OF_TURN = "out of turn"


@dataclass(frozen=True, slots=True)
class Refuse:
    """Refuse what was asked."""

    why: Why


Effect = (
    TakeEpoch
    | JobGranted
    | Publish
    | AnswerFirst
    | Join
    | StoreFailed
    | SweepChunk
    | SweepEpochsBelow
    | SweepAll
    | TellSilent
    | Refuse
)
Step = tuple[JobState, tuple[Effect, ...]]


def step(state: JobState, given: Input) -> Step:
    """The next state of the job, and the effects to carry out."""
    match given:
        case Acquire() | EpochStored() | EpochNotStored():
            return _taken(state, given)
        case Renew() | GiveUp():
            return _heard(state, given)
        case Commit():
            return _commit(state, given)
        case Published() | NotPublished():
            return _published(state, given)
        case PhaseStored() | Tick():
            return _outlived(state, given)


def _taken(state: JobState, given: Acquire | EpochStored | EpochNotStored) -> Step:
    match given:
        case Acquire():
            return _acquire(state, given)
        case EpochStored():
            return _epoch_stored(state, given)
        case EpochNotStored():
            return replace(state, taking=None), ()


def _acquire(state: JobState, given: Acquire) -> Step:
    if state.phase in ENDED:
        return state, (Refuse(Why.NOT_IN_PHASE),)
    lease = state.lease
    if lease is not None and lease.token == given.token and given.token:
        until_ms = given.now_ms + JOB_LEASE_MS
        return replace(state, lease=replace(lease, until_ms=until_ms)), (JobGranted(state.epoch),)
    is_live = lease is not None and given.now_ms < lease.until_ms
    if is_live or state.taking is not None:
        return state, (Refuse(Why.LEASED),)
    taken = replace(state, lease=None, taking=given.token)
    # An acquire before the next tick must not hide that the last driver fell silent.
    return taken, (TakeEpoch(state.epoch + 1), *((TellSilent(),) if lease is not None else ()))


def _epoch_stored(state: JobState, given: EpochStored) -> Step:
    if state.taking is None or given.epoch <= state.epoch:
        return state, ()
    lease = Lease(state.taking, given.now_ms + JOB_LEASE_MS)
    taken = replace(state, epoch=given.epoch, lease=lease, taking=None)
    if state.phase in ENDED:
        return replace(taken, lease=None), (Refuse(Why.NOT_IN_PHASE),)
    return taken, (JobGranted(given.epoch), SweepEpochsBelow(given.epoch))


def _heard(state: JobState, given: Renew | GiveUp) -> Step:
    """Take a message of the driver of an epoch."""
    refused = _refused(state, given.epoch)
    if refused is not None:
        return state, (refused,)
    if isinstance(given, GiveUp):
        return state, (StoreFailed(),)
    token = b"" if state.lease is None else state.lease.token
    lease = Lease(token, given.now_ms + JOB_LEASE_MS)
    return replace(state, lease=lease), (JobGranted(state.epoch),)


def _refused(state: JobState, epoch: int) -> Refuse | None:
    """Why the driver of an epoch may not go on."""
    if epoch != state.epoch or state.taking is not None:
        return Refuse(Why.FENCED)
    return Refuse(Why.NOT_IN_PHASE) if state.phase in ENDED else None


def _commit(state: JobState, given: Commit) -> Step:
    instead = _out_of_turn(state, given)
    if instead is not None:
        return state, (instead,)
    publish = Publish(given.chunk, given.epoch)
    return replace(state, publishing=given.chunk), (publish,)


def _out_of_turn(state: JobState, given: Commit) -> AnswerFirst | Join | Refuse | None:
    """The answer to a commit whose chunk is not to be published; None: publish it."""
    if given.epoch != state.epoch or state.taking is not None:
        return Refuse(Why.FENCED)
    if not 0 <= given.chunk < state.chunks:
        return Refuse(Why.NO_CHUNK)
    if given.chunk < state.published:
        # This holds for a job that has ended too: the answer to its last chunk may be lost.
        return AnswerFirst(given.chunk)
    if given.chunk == state.publishing:
        return Join(given.chunk)
    is_next = given.chunk == state.published and state.publishing is None
    if state.phase is not Phase.ACTIVE or not is_next:
        return Refuse(Why.NOT_IN_PHASE if state.phase is not Phase.ACTIVE else Why.OUT_OF_TURN)
    return None


def _published(state: JobState, given: Published | NotPublished) -> Step:
    if given.chunk != state.publishing:
        return state, ()
    if isinstance(given, NotPublished):
        return replace(state, publishing=None), ()
    published = given.chunk + 1
    phase = state.phase
    if published == state.chunks and phase not in ENDED:
        phase = Phase.DONE
    after = replace(state, publishing=None, published=published, phase=phase)
    return after, (SweepAll() if phase in ENDED else SweepChunk(given.chunk),)


def _outlived(state: JobState, given: PhaseStored | Tick) -> Step:
    ended = state.phase in ENDED
    if isinstance(given, PhaseStored):
        if ended:
            return state, ()
        swept = (SweepAll(),) if given.phase in ENDED else ()
        return replace(state, phase=given.phase), swept
    lease = state.lease
    if lease is None or given.now_ms < lease.until_ms:
        return state, ()
    return replace(state, lease=None), (() if ended else (TellSilent(),))
