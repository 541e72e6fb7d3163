"""Counts of deliveries to clients, for the metrics.

Invariant: a message is counted once, by the task that writes it, right before the write; a message
that is lost with its connection counts too.
"""

from collections.abc import Iterable

from dss_core.frame import append_time_us
from dssd.loop_yield import LoopTurn
from dssd.machines.delivery.credit import Credit
from dssd.machines.delivery.events import Deliver
from dssd.measuring.latencies import Latencies
from dssd.queues.failures import FailureCounts

AGE_BOUNDS_S = (
    0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0, 300.0, 3_600.0,
)  # fmt: skip
"""The buckets for ages of records: up to those of a group that comes back after a break."""


class Deliveries:
    """Counts for all sessions together."""

    __slots__ = ("ages", "bytes", "failures", "messages", "records", "redelivered")

    def __init__(self) -> None:
        self.messages = 0
        self.records = 0
        self.redelivered = 0
        """How many of the records were redelivered."""
        self.bytes = 0
        self.failures = FailureCounts()
        self.ages = Latencies(AGE_BOUNDS_S)
        """The age of the first record of each delivery that was not a redelivery."""

    def note(self, deliveries: Iterable[Deliver], wall_us: int) -> None:
        """These deliveries go to a client now, in one message."""
        self.messages += 1
        for each in deliveries:
            self._note(each, wall_us)

    def _note(self, delivery: Deliver, wall_us: int) -> None:
        masked = sum([end - start for start, end in delivery.mask])
        records = delivery.end - delivery.base - masked
        self.records += records
        self.bytes += len(delivery.frames)
        if delivery.redelivered:
            self.redelivered += records
        else:
            self.ages.note(max(0, wall_us - append_time_us(delivery.frames)) / 1_000_000)


async def credits_of(sessions: Iterable[Credit]) -> "CreditCounts":
    """The credit of sessions, added up in short turns."""
    turn = LoopTurn()
    counts = CreditCounts()
    for credit in sessions:
        await turn.give_way()
        counts.add(credit)
    return counts


class CreditCounts:
    """The credit of some sessions, added up."""

    __slots__ = ("bytes", "exhausted", "out_bytes", "out_records", "records")

    def __init__(self) -> None:
        self.records = 0
        self.bytes = 0
        self.out_records = 0
        self.out_bytes = 0
        self.exhausted = 0
        """Sessions that get nothing more until they settle."""

    def add(self, credit: Credit) -> None:
        """Add the credit of one more session."""
        self.records += credit.records
        self.bytes += credit.bytes
        self.out_records += credit.out_records
        self.out_bytes += credit.out_bytes
        if credit.out_records >= credit.records or credit.out_bytes >= credit.bytes:
            self.exhausted += 1
