"""How the records of one grant are marked when they are sent: as redelivered, and as which attempt.

A record below the granted frontier, or below the one that this client reported, was handed out
before: it is redelivered. So is one below ``suspect_end``, which was perhaps handed out before a
crash, but that does not count as an attempt.

If the last holder died of one of the records that it was handed, sending all of them again would
blame them all again. So of records with k attempts under older grants only ``credit >> k`` may be
out at a time. Invariant: an attempt is counted once, and never taken back while the record is
unacknowledged. This module does not know what is out.
"""

from itertools import chain

from dss_core.progress import Progress, Ranges, complement, normalised
from dssd.machines.delivery.attempt_counts import AttemptCounts
from dssd.machines.delivery.frame_plan import Stretch
from dssd.machines.delivery.outstanding import Outstanding, SentRange
from dssd.machines.messages import Attempts, GrantedStream


def together_max(credit: int, attempts: int) -> int:
    """How many records with this number of attempts may be out together: halved with each."""
    return max(1, credit >> min(attempts, 63))


class Marking:
    """What is known of the attempts of one grant's records."""

    __slots__ = ("_counts", "_credit_records", "_granted_frontier", "_suspect_end", "fresh_from")

    def __init__(self, granted: GrantedStream, credit_records: int) -> None:
        self._counts = AttemptCounts(granted.attempts)
        self._credit_records = credit_records
        self._granted_frontier = granted.frontier
        self._suspect_end = granted.suspect_end
        ranges = granted.progress.ranges
        ranges_end = ranges[-1][1] if ranges else 0
        self.fresh_from = max(granted.frontier, granted.suspect_end, self._counts.end(), ranges_end)
        """No record from here on was acknowledged, or perhaps handed out, before the grant."""

    def known_below(self, frontier: int) -> int:
        """Every record below it had an attempt, where this client handed out up to the frontier."""
        return max(self._granted_frontier, frontier)

    def attempts(self) -> Attempts:
        """As the group protocol carries them."""
        return self._counts.entries()

    def counted(self, start: int, end: int, frontier: int) -> list[tuple[int, int, int]]:
        """``[start, end)`` cut into ranges of one number of attempts: (start, end, attempts)."""
        return self._counts.segments(start, end, self.known_below(frontier))

    # Sending

    def first_stretch(
        self, wanted: Ranges, frontier: int, out: Outstanding, *, again: bool
    ) -> Stretch:
        """What has the mark of the first wanted record, as far as no other is wanted in between.

        Again: the records were sent under this grant before.
        """
        first: Stretch | None = None
        stretches = (self._stretches(start, end, frontier, out, again) for start, end in wanted)
        for each in chain.from_iterable(stretches):
            if first is None:
                first = each
            elif (each.redelivered, each.attempt) == (first.redelivered, first.attempt):
                first = first.joined(each)
            else:
                break
        assert first is not None
        return first

    def _stretches(
        self, start: int, end: int, frontier: int, out: Outstanding, again: bool
    ) -> list[Stretch]:
        stretches: list[Stretch] = []
        for low, high, count in self.counted(start, end, frontier):
            most = together_max(self._credit_records, count) if count else high - low
            if count and not again:
                most = out.suspect_room(most)
            marked = again or count > 0
            if not marked and low < self._suspect_end:
                split = min(high, self._suspect_end)
                stretches.append(Stretch(low, split, True, 1, split - low))
                low = split
            if low < high:
                stretches.append(Stretch(low, high, marked, count + 1, most))
        return stretches

    def of_one_attempt(self, wanted: Ranges, frontier: int) -> tuple[Ranges, Stretch]:
        """Of what comes again under this grant: all that had as many attempts as the first of it.

        What lies between and had another number goes in a delivery of its own.
        """
        counted = [each for start, end in wanted for each in self.counted(start, end, frontier)]
        count = counted[0][2]
        same = normalised((start, end) for start, end, each in counted if each == count)
        start, end = same[0][0], same[-1][1]
        most = together_max(self._credit_records, count) if count else end - start
        return same, Stretch(start, end, True, count + 1, most)

    def suspects_max(self, attempt: int) -> int:
        """How many records may be out with one that is sent as this attempt; 0: any number."""
        return together_max(self._credit_records, attempt - 1) if attempt > 1 else 0

    # Counting

    def note_handed_out(self, progress: Progress, before: int, frontier: int) -> None:
        """The client's frontier rose: count an attempt of what had one under an older grant.

        A first attempt is told by the frontier itself.
        """
        if before >= self._granted_frontier and self._counts.end() <= before:
            return
        known = self._granted_frontier
        for start, end in progress.unacked(frontier):
            if end > before:
                for low, high, count in self._counts.segments(max(start, before), end, known):
                    if count:
                        self._counts.charge(low, high, known)

    def note_handed_out_again(self, sent: SentRange, frontier: int) -> None:
        """What came again under this grant was handed out: count an attempt."""
        known = self.known_below(frontier)
        for start, end in complement(sent.gaps, sent.start, sent.end):
            self._counts.charge(start, end, known)

    def forget(self, start: int, end: int) -> None:
        """The records were acknowledged."""
        self._counts.forget(start, end)
