"""How the records of one grant are marked when they are sent: as redelivered, and as which attempt.

A record below the granted frontier, or below the one that this client reported, was handed out
before: it is marked redelivered. So is a record below ``suspect_end``, which was perhaps handed out
before a crash of the daemon; that does not count as an attempt.

An attempt is a hand-out that is known or in doubt: records that were out when a client vanished may
have been handed out. A *failure* is an attempt that surely failed because of the record. A *doubt*
is a client that vanished while the record was out: it may have died of it. Sending all such records
again together would blame them all again. So of records with k attempts under older grants only
``credit >> k`` may be out at a time; from the second doubt on, each cuts that by `DOUBT_SHIFT` bits
more. Invariant: an attempt is counted once, and never taken back while the record is
unacknowledged. A failure that is moved to a queue is counted by its entry, not here. This module
does not know what is out.
"""

from collections.abc import Iterator
from itertools import chain

from dss_core.progress import Progress, Ranges, clipped, complement, covers, normalised
from dssd.limits import ISOLATE_AFTER_DOUBTS
from dssd.machines.attempts import Attempts
from dssd.machines.delivery.attempt_counts import AttemptCounts
from dssd.machines.delivery.frame_plan import Stretch
from dssd.machines.delivery.outstanding import Outstanding, SentRange
from dssd.machines.messages import GrantedStream

DOUBT_SHIFT = 3
"""From the second doubt on, each doubt halves the number of records that may be out together this
many times more than an attempt does: a client that vanishes leaves 16 times fewer, so few vanish in
all."""


def together_max(credit: int, attempts: int, doubts: int) -> int:
    """How many records with these counts of attempts and doubts may be out together."""
    return max(1, credit >> min(attempts + DOUBT_SHIFT * max(doubts - 1, 0), 63))


class Marking:
    """What is known of the attempts of one grant's records."""

    __slots__ = (
        "_counts", "_credit_records", "_doubts", "_early", "_failures", "_granted_frontier",
        "_suspect_end", "fresh_from",
    )  # fmt: skip

    def __init__(self, granted: GrantedStream, credit_records: int) -> None:
        self._counts = AttemptCounts(granted.attempts)
        self._failures = AttemptCounts(granted.fate.failures)
        self._doubts = AttemptCounts(granted.fate.doubts)
        self._early: Ranges = ()
        """Handed out under this grant, above the frontier that the client reported."""
        self._credit_records = credit_records
        self._granted_frontier = granted.frontier
        self._suspect_end = granted.suspect_end
        ranges = granted.progress.ranges
        ranges_end = ranges[-1][1] if ranges else 0
        self.fresh_from = max(granted.frontier, granted.suspect_end, self._counts.end(), ranges_end)
        """No record from here on was acknowledged, or perhaps handed out, before the grant."""

    def known_below(self, frontier: int) -> int:
        """Every record below this had an attempt, if this client handed out up to ``frontier``."""
        return max(self._granted_frontier, frontier)

    def attempts(self) -> Attempts:
        """As the group protocol carries them."""
        return self._counts.entries()

    def failures(self) -> Attempts:
        """As the group protocol carries them."""
        return self._failures.entries()

    def doubts(self) -> Attempts:
        """As the group protocol carries them."""
        return self._doubts.entries()

    def counted(self, start: int, end: int, frontier: int) -> list[tuple[int, int, int]]:
        """``[start, end)`` cut into ranges of one number of attempts: (start, end, attempts)."""
        return self._counts.segments(start, end, self.known_below(frontier))

    def is_early(self, offset: int) -> bool:
        """Whether the client handed it out above its frontier."""
        return covers(self._early, offset)

    # Sending

    def first_stretch(self, wanted: Ranges, frontier: int, out: Outstanding) -> Stretch:
        """The wanted records, from the first on, that have the mark of the first without a break.

        For records that were not sent under this grant before.
        """
        first: Stretch | None = None
        stretches = (self._stretches(start, end, frontier, out) for start, end in wanted)
        for each in chain.from_iterable(stretches):
            if first is None:
                first = each
            elif each.has_mark_of(first):
                first = first.joined(each)
            else:
                break
        assert first is not None
        return first

    def _stretches(self, start: int, end: int, frontier: int, out: Outstanding) -> list[Stretch]:
        stretches: list[Stretch] = []
        for low, high, count, doubts in self._doubted(start, end, frontier):
            most = high - low
            if count:
                most = out.suspect_room(together_max(self._credit_records, count, doubts))
            marked = count > 0
            if not marked and low < self._suspect_end:
                split = min(high, self._suspect_end)
                stretches.append(Stretch(low, split, True, 1, split - low))
                low = split
            if low < high:
                stretches.append(Stretch(low, high, marked, count + 1, most, doubts))
        return stretches

    def _doubted(self, start: int, end: int, frontier: int) -> Iterator[tuple[int, int, int, int]]:
        for low, high, count in self.counted(start, end, frontier):
            if count:
                for at, until, doubts in self._doubts.segments(low, high, 0):
                    yield at, until, count, doubts
            else:
                yield low, high, 0, 0

    def of_one_mark(self, wanted: Ranges, frontier: int) -> tuple[Ranges, Stretch]:
        """All wanted records that have the mark of the first; for redeliveries under this grant.

        Records of another mark in between go in a delivery of their own.
        """
        each = [part for span in wanted for part in self._doubted(*span, frontier)]
        _, _, count, doubts = each[0]
        same = normalised((low, high) for low, high, *mark in each if mark == [count, doubts])
        start, end = same[0][0], same[-1][1]
        most = together_max(self._credit_records, count, doubts) if count else end - start
        return same, Stretch(start, end, True, count + 1, most, doubts)

    def sendings(
        self, picked: Ranges, frontier: int, again: bool
    ) -> Iterator[tuple[int, int, bool]]:
        """The ranges, cut by whether this client has reported before that it handed them out.

        For those records the frontier tells nothing: a new hand-out is reported by offset.
        """
        if not again:
            yield from ((start, end, False) for start, end in picked)
            return
        known = normalised(((0, frontier), *self._early))
        for start, end in picked:
            cut = [(low, high, True) for low, high in clipped(known, start, end)]
            cut += [(low, high, False) for low, high in complement(known, start, end)]
            yield from sorted(cut)

    def suspects_max(self, attempt: int, doubts: int) -> int:
        """How many records may be out with one that is sent as this attempt; 0: any number."""
        return together_max(self._credit_records, attempt - 1, doubts) if attempt > 1 else 0

    # Counting

    def note_handed_out(
        self, progress: Progress, before: int, frontier: int, held_back: Ranges
    ) -> Ranges:
        """The client's frontier rose: count an attempt of records that had one before the grant.

        The frontier itself tells a first attempt. Records that are held back were not sent under
        this grant. Returns the ranges that were handed out by this.
        """
        spared = normalised((*self._early, *held_back)) if self._early or held_back else ()
        self._early = tuple((low, high) for low, high in self._early if high > frontier)
        handed = complement(spared, before, frontier) if spared else ((before, frontier),)
        if before >= self._granted_frontier and self._counts.end() <= before:
            return handed
        known = self._granted_frontier
        for start, end in progress.unacked(frontier):
            for low, high in clipped(handed, start, end):
                self._charge_suspects(low, high, known)
        return handed

    def _charge_suspects(self, start: int, end: int, known: int) -> None:
        for low, high, count in self._counts.segments(start, end, known):
            if count:
                self._counts.charge(low, high, known)

    def note_handed_out_early(self, start: int, end: int) -> None:
        """The client handed out records above its frontier."""
        for low, high in complement(self._early, start, end):
            self._counts.charge(low, high, self._granted_frontier)
        self._early = normalised((*self._early, (start, end)))

    def note_in_doubt(self, start: int, end: int, frontier: int) -> None:
        """The client vanished while the records were out: those not known to be handed out may
        have been."""
        for low, high in complement(self._early, max(start, frontier), end):
            self._counts.charge(low, high, self.known_below(frontier))

    def note_doubt(self, start: int, end: int) -> None:
        """A client vanished with the records."""
        self._doubts.charge(start, end, 0)

    def suspects(self, start: int, end: int) -> list[tuple[int, int, int]]:
        """The parts of ``[start, end)`` to send alone, and how many clients vanished with them."""
        segments = self._doubts.segments(start, end, 0)
        return [each for each in segments if each[2] >= ISOLATE_AFTER_DOUBTS]

    def note_failed(self, start: int, end: int) -> None:
        """The last attempt of the records surely failed because of them."""
        self._failures.charge(start, end, 0)

    def failed(self, start: int, end: int) -> list[tuple[int, int, int]]:
        """``[start, end)`` cut into ranges that failed equally often: (start, end, failures)."""
        # Most often nothing has, and followers are asked for one by one.
        return self._failures.segments(start, end, 0) if self._failures else [(start, end, 0)]

    def deaths(self, start: int, end: int) -> list[tuple[int, int, int]]:
        """``[start, end)`` cut by how many of the failures were clients that vanished."""
        return [
            (at, until, min(failures, doubts))
            for low, high, failures in self.failed(start, end)
            for at, until, doubts in self._doubts.segments(low, high, 0)
        ]

    def note_handed_out_again(self, sent: SentRange, frontier: int) -> None:
        """A redelivery under this grant was handed out: count an attempt."""
        known = self.known_below(frontier)
        self._counts.charge(sent.start, sent.end, known)

    def forget(self, start: int, end: int) -> None:
        """The records were acknowledged."""
        self._counts.forget(start, end)
        self._failures.forget(start, end)
        self._doubts.forget(start, end)
