"""The state of a lane's queues, as leader and holder exchange it: docs/delivery.md.

A queue is a stream of its own: the retry queue of a lane, or its dead letters. Only the holder of
the lane appends to them. An entry acknowledges its *source*, the record of any level that it was
made of. So the next holder applies the entries beyond `applied_end`, and no record is in two places
or in none. The queues may hold entries that nobody reported while more opens and moves of the lane
have `begun` than `ended`; until these are equal, the lane is not over. Invariants: merging is
monotone and gives the same in any order; a report has `applied_end` together with the progress that
belongs to it, and `begun` together with the acknowledgements at that time.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from dss_core.ids import StreamId
from dss_core.lane import DEAD, RETRY
from dss_core.progress import Progress, Ranges, normalised, without
from dssd.limits import BACKOFF_MS
from dssd.machines.attempts import Attempts, merged_attempts, without_rests
from dssd.machines.fate import NO_FATE, Fate

NOTHING_DONE = Progress(0)


class Redrive(NamedTuple):
    """Dead letters that an operation brings back."""

    operation: int = 0
    """Its number; 0: there is none."""
    ranges: Ranges = ()
    """Empty: it was stopped."""
    over_ms: int = 0
    """The duration over which those of each lane come back evenly; 0: none is given."""
    whole_keys: bool = False
    """They are all the dead letters of their keys; followers that died since come back too."""


NO_REDRIVE = Redrive()

RETRY_NOW, RETRY_LATER, SKIP, BURY = "now", "later", "skip", "dead"
"""What an operation does with entries of a retry queue: make them due at once, or at their own
times again; pass them over; or make them dead letters."""

HAD_LEFT = "left"
"""Only for dead letters: an operation was to discard these, but they had left before. The holder
has nothing to do; the operation is told."""


class Errand(NamedTuple):
    """What an operation asks of the next holder of a lane: to pass over entries of its retry
    queue, or to move them to the dead letters."""

    operation: int = 0
    """Its number; 0: there is none."""
    what: str = ""
    ranges: Ranges = ()
    """Empty: it is done, or was stopped."""


class Hurried(NamedTuple):
    """Entries of a retry queue that are due now, whatever their own due times."""

    operation: int = 0
    """The operation that hurried them last."""
    ranges: Ranges = ()


NO_ERRAND = Errand()
NONE_HURRIED = Hurried()


@dataclass(frozen=True, slots=True)
class QueueState:
    """The state of one queue of a lane."""

    stream: StreamId
    progress: Progress = NOTHING_DONE
    """Which entries are done: handed out and acknowledged, moved on, or discarded."""
    applied_end: int = 0
    """The source of every entry below it is acknowledged."""
    attempts: Attempts = ()
    """Attempts of entries, beside those that are written in the entries."""
    fate: Fate = NO_FATE
    redrive: Redrive = NO_REDRIVE
    """A redrive of dead letters; those that are back are acknowledged in the progress."""
    errand: Errand = NO_ERRAND
    """An errand for a retry queue; for dead letters: those that had left before a discard."""
    hurried: Hurried = NONE_HURRIED
    """Entries of a retry queue that are due at once."""
    begun: int = field(default=0, compare=False)
    """Only of a retry queue: how many openings and moves of the lane were begun since it was lent.
    It is not stored, so a rise of it alone needs no commit."""
    ended: int = field(default=0, compare=False)
    """How many of these are over."""

    def merged(self, other: "QueueState") -> "QueueState":
        """What both know."""
        begun, ended = max(self.begun, other.begun), max(self.ended, other.ended)
        if self == other:
            is_so = (begun, ended) == (self.begun, self.ended)
            return self if is_so else replace(self, begun=begun, ended=ended)
        progress = self.progress.merged(other.progress)
        return QueueState(
            self.stream,
            progress,
            max(self.applied_end, other.applied_end),
            merged_attempts(self.attempts, other.attempts, progress),
            self.fate.merged(other.fate, progress),
            max(self.redrive, other.redrive, key=_newest),
            max(self.errand, other.errand, key=_newest),
            max(self.hurried, other.hurried),
            begun,
            ended,
        )

    def covers(self, other: "QueueState") -> bool:
        """Whether it includes all that the other says is done."""
        if other.applied_end > self.applied_end or other.ended > self.ended:
            return False
        if _newest(other.errand) > _newest(self.errand):
            return False
        return self.progress.merged(other.progress) == self.progress

    @property
    def redriving(self) -> int:
        """The operation that brings entries back and has not brought all; 0: there is none."""
        left = (self.progress.first_unacked(start) < end for start, end in self.redrive.ranges)
        return self.redrive.operation if any(left) else 0

    def take_errand(self, operation: int, what: str, ranges: Ranges) -> "QueueState":
        """The state with an errand of an operation for entries of a retry queue."""
        if what not in (RETRY_NOW, RETRY_LATER):
            return replace(self, errand=Errand(operation, what, ranges))
        done = ((0, self.progress.floor), *self.progress.ranges)
        hurried = without(self.hurried.ranges, normalised((*done, *ranges)))
        if what == RETRY_LATER:
            return replace(self, hurried=Hurried(operation, hurried))
        # Only the present rests end: a delay that a user chooses later counts again.
        fate = replace(self.fate, rests=without_rests(self.fate.rests, ranges))
        return replace(self, fate=fate, hurried=Hurried(operation, normalised((*hurried, *ranges))))

    def end_errand(self) -> "QueueState":
        """The state with its errand done, or stopped."""
        return replace(self, errand=self.errand._replace(ranges=()))

    def bring_back(self, redrive: Redrive) -> "QueueState":
        """The state with a redrive, unless that is empty."""
        return replace(self, redrive=redrive) if redrive.ranges else self

    def stop_redrive(self) -> "QueueState":
        """The state with its redrive stopped."""
        return replace(self, redrive=Redrive(self.redrive.operation))

    def discard(self, operation: int, ranges: Ranges) -> "QueueState":
        """The state with these dead letters done, counted as moved by an operator; those that had
        left before are noted."""
        progress = self.progress.with_acked(ranges)
        more = _covered(progress) - _covered(self.progress)
        fate = replace(self.fate, counts=self.fate.counts.plus("moved", more))
        done = ((0, self.progress.floor), *self.progress.ranges)
        left = without(ranges, without(ranges, normalised(done)))
        errand = Errand(operation, HAD_LEFT, left) if left else self.errand
        return replace(self, progress=progress, fate=fate, errand=errand)

    def begin(self) -> "QueueState":
        """One more opening or move of the lane is begun."""
        return replace(self, begun=self.begun + 1)

    def end(self) -> "QueueState":
        """One more opening or move is over."""
        return replace(self, ended=self.ended + 1)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is known to wait in it."""
        return self.progress.floor >= self.applied_end


def _newest(asked: Redrive | Errand) -> tuple[int, bool]:
    """Sorts by operation. Of one operation, empty ranges win: it was stopped, or is done."""
    return asked.operation, not asked.ranges


def _covered(progress: Progress) -> int:
    return progress.floor + progress.acked_above_floor()


Queues = tuple[QueueState, ...]
"""The retry queue and the dead letters of a lane; empty in a group without queues."""


def merged_queues(mine: Queues, other: Queues) -> Queues:
    """Both merged; a side without queues changes nothing."""
    if not (mine and other):
        return mine or other
    return tuple(one.merged(two) for one, two in zip(mine, other, strict=True))


def lent_anew(queues: Queues) -> Queues:
    """The queues for a new holder of the lane, which begins with opening it."""
    return queues and (replace(queues[RETRY - 1], begun=1, ended=0), *queues[RETRY:])


def out_of_sight(queues: Queues) -> Queues:
    """The queues after a holder without a final report: it may have begun another move."""
    return queues and (queues[RETRY - 1].begin(), *queues[RETRY:])


def asked_of_holder(queues: Queues) -> int:
    """The operation whose entries the holder has not dealt with yet; 0: none."""
    if not queues:
        return 0
    errand = queues[RETRY - 1].errand
    return errand.operation if errand.ranges else queues[DEAD - 1].redriving


def have_been_asked(queues: Queues) -> bool:
    """Whether an operation has ever had a holder deal with entries."""
    return bool(
        queues and (queues[RETRY - 1].errand.operation or queues[DEAD - 1].redrive.operation)
    )


def are_known(queues: Queues) -> bool:
    """Whether all entries in them have been reported."""
    return not queues or queues[RETRY - 1].ended >= queues[RETRY - 1].begun


def begun_as(queues: Queues, now: Queues) -> Queues:
    """The same queues, with the counts of ``now`` of what was begun and is over."""
    if not (queues and now):
        return queues
    begun, ended = now[RETRY - 1].begun, now[RETRY - 1].ended
    return (replace(queues[RETRY - 1], begun=begun, ended=ended), *queues[RETRY:])


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How a group treats records that fail."""

    max_deliver: int
    """Attempts before a record is dead."""
    backoff_ms: tuple[int, ...]
    """How long it rests after the first failure, the second, ...; the last one repeats."""
    queue_records: int
    queue_bytes: int
    """How much the queues of a lane may hold; beyond it no more is moved from its stream."""
    ordered: bool = False
    """Records of a key come in order, one at a time."""
    blocks: bool = False
    """A dead letter holds up its key."""
    keyless_dead: bool = False
    """Records without a key become dead letters at once; else they are sent in no order."""

    def rest_ms(self, failures: int) -> int:
        """How long a record rests that failed so often."""
        return self.backoff_ms[min(max(failures, 1), len(self.backoff_ms)) - 1]


BLOCK, DEAD_LETTERS = "block", "dead"
"""The words in a group's row for dead letters that hold up their keys, and for records without a
key that become dead letters at once."""


def policy_from(
    max_deliver: int,
    backoff: str,
    queue_records: int,
    queue_bytes: int,
    *,
    ordered: bool = False,
    on_dead_letter: str = "",
    keyless: str = "",
) -> RetryPolicy | None:
    """How a group treats records that fail, by the values of its row; None: it has no queues."""
    if not max_deliver:
        return None
    return RetryPolicy(
        max_deliver,
        parsed_backoff(backoff),
        queue_records,
        queue_bytes,
        ordered,
        ordered and on_dead_letter == BLOCK,
        ordered and keyless == DEAD_LETTERS,
    )


def parsed_backoff(text: str) -> tuple[int, ...]:
    """The back-off of a group's row; the default where it has none."""
    return tuple(int(each) for each in text.split(",")) if text else BACKOFF_MS


def backoff_text(backoff_ms: Sequence[int]) -> str:
    """A back-off, as a group's row has it."""
    return ",".join(map(str, backoff_ms))
