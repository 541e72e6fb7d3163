"""Which records of retry queues a session may send, judged from notes on what it was told.

    Q4  nothing is sent before its time, by the session's own clock
    Q3  nor is an entry whose record the client acknowledged where it was before, after its ack wait
        had run out or while it was moved
    Q8  what a client refused before it gave a lane back is in a queue by the final report, with its
        error, unless the queues are full

Invariant: this takes notes and looks; nothing that a session does depends on it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from dss_core.lane import MAIN, RETRY, grant_and_level
from dss_core.progress import Ranges, clipped, complement, covers, normalised
from dss_sim.groups.queue_work import LaneAnswer
from dss_sim.groups.violation import Violation
from dssd.machines.delivery.events import Deliver, EntriesRead, Entry, Moved, Settle
from dssd.machines.messages import StreamReport
from dssd.queues.lane import Lane


@dataclass(slots=True)
class _Notes:
    lane: Lane
    wall_ahead_ms: int
    entries: dict[int, Entry] = field(default_factory=dict)
    """Entries of the retry queue, by offset."""
    made: set[int] = field(default_factory=set)
    """Entries that this holder made."""
    acked: set[int] = field(default_factory=set)
    """Offsets of the stream that this client acknowledged."""
    done: set[int] = field(default_factory=set)
    """Entries whose record it acknowledged before they were sent."""
    sent: set[int] = field(default_factory=set)
    refused: set[int] = field(default_factory=set)
    """Offsets of the stream that this client refused."""
    may_be_full: bool = False
    hurried: Ranges = ()
    """Entries that an operator brought forward."""


class LaneRules:
    """The notes on the lanes of one session."""

    def __init__(self) -> None:
        self._lanes: dict[int, _Notes] = {}

    def installed(
        self,
        grant: int,
        lane: Lane,
        wall_ahead_ms: int,
        *,
        may_be_full: bool,
        hurried: Ranges = (),
    ) -> None:
        """The window gets a lane; its queues are full soon or never."""
        self._lanes[grant] = _Notes(lane, wall_ahead_ms, may_be_full=may_be_full, hurried=hurried)

    def dropped(self, grant: int) -> None:
        """A grant is over."""
        self._lanes.pop(grant, None)

    def answered(self, answer: LaneAnswer) -> None:
        """The window is told of entries."""
        notes = self._lanes.get(answer.grant)
        if notes is None:
            return
        if isinstance(answer, EntriesRead) and answer.level == RETRY:
            notes.entries |= {entry.offset: entry for entry in answer.entries}
        elif isinstance(answer, Moved):
            made = [entry for level, entry in answer.entries if level == RETRY]
            notes.entries |= {entry.offset: entry for entry in made}
            notes.made |= {entry.offset for entry in made}
            self._note_done(notes, made)

    def settled(self, settles: Iterable[Settle]) -> None:
        """The client reports its progress."""
        for settle in settles:
            grant, level = grant_and_level(settle.grant)
            notes = self._lanes.get(grant)
            if notes is not None and level == MAIN:
                notes.refused |= {at for nak in settle.naks for at in range(nak.start, nak.end)}
            if notes is not None and level == MAIN and settle.acked:
                notes.acked |= {at for span in settle.acked for at in range(*span)}
                self._note_done(notes, notes.entries.values())

    def _note_done(self, notes: _Notes, entries: Iterable[Entry]) -> None:
        notes.done |= {
            entry.offset
            for entry in entries
            if entry.source_level == MAIN
            and entry.source_offset in notes.acked
            and entry.offset in notes.made - notes.sent
        }

    def reported_last(self, grant: int, report: StreamReport) -> None:
        """Q8: a lane is given back.

        Raises:
            Violation: a refused record is still where it was.
        """
        notes = self._lanes.get(grant)
        if notes is None or report.sent is not None or notes.may_be_full:
            return
        left = [at for at in sorted(notes.refused) if not report.progress.is_acked(at)]
        if left:
            raise Violation("Q8", f"{left} were refused, and are not moved: {report}")

    def check_delivery(self, delivery: Deliver, now_ms: int) -> None:
        """Q3, Q4: records sent from a queue are due, and not done.

        Raises:
            Violation: it is not.
        """
        grant, level = grant_and_level(delivery.grant)
        notes = self._lanes.get(grant)
        if notes is None or level != RETRY:
            return
        masked = clipped(normalised(delivery.mask), delivery.base, delivery.end)
        for span in complement(masked, delivery.base, delivery.end):
            for offset in range(*span):
                due_ms = notes.entries[offset].due_ms
                is_early = now_ms + notes.wall_ahead_ms < due_ms
                if is_early and not covers(notes.hurried, offset):
                    raise Violation("Q4", f"{offset} is due at {due_ms} ms: {delivery}")
                if offset in notes.done:
                    raise Violation("Q3", f"the client had acknowledged {offset}: {delivery}")
                notes.sent.add(offset)
