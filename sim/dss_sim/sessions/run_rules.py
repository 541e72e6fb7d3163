"""What must hold of `run`, judged as its handlers begin and end.

    K1   of a key under one grant one record is handled at a time
    K2   none is handled while an earlier one of its key, refused under that grant, is to come again
    K3   a refused record rests as long as its delay says, or as the back-off of its attempt; where
         its ack wait may have run out before, as long as a chosen delay says while it rested, and
         no longer where it may have been on its way again by then

Invariant: the rules know what handlers did, and never ask the library or the daemon. Order, marks
and attempts across grants are the checker's.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

from dss_sim.groups.history import Key
from dss_sim.groups.violation import Violation
from dssd.machines.delivery.retry import backoff_ms

ROUNDING_US = 2_000
"""Clocks are read in whole milliseconds."""
HEARD_US = 100_000
"""How long until the daemon knows what a handler did."""


class Line(NamedTuple):
    """Where `run` keeps order: a key under one grant."""

    member: str
    group: str
    stream: str
    grant_epoch: int
    key: Key


class Handled(NamedTuple):
    """One call of a handler."""

    line: Line
    offset: int
    attempt: int


@dataclass(slots=True)
class _Known:
    busy: dict[int, int] = field(default_factory=dict)
    """The records that are being handled, and since when."""
    refused: dict[int, int] = field(default_factory=dict)
    """The records that are to come again, and until when they rest."""


class RunRules:
    """Takes what handlers do; raises `Violation`."""

    def __init__(self, ack_wait_us: int) -> None:
        self._ack_wait_us = ack_wait_us
        """The shortest ack wait of any group."""
        self.paused: set[str] = set()
        """Groups that were ever paused: what expires then rests no longer than the pause."""
        self._lines: defaultdict[Line, _Known] = defaultdict(_Known)

    def begun(self, handled: Handled, now_us: int) -> None:
        """A handler is called.

        Raises:
            Violation: it is too early.
        """
        known, offset = self._lines[handled.line], handled.offset
        until_us = known.refused.pop(offset, None)
        if until_us is not None and now_us + ROUNDING_US < until_us:
            raise Violation("K3", f"at {now_us} it was to rest until {until_us}: {handled}")
        if handled.line.key is not None:
            earlier = [each for each in known.refused if each < offset]
            if known.busy:
                raise Violation("K1", f"{known.busy} are being handled at {now_us}: {handled}")
            if earlier:
                raise Violation("K2", f"{earlier} are to come again, at {now_us}: {handled}")
        known.busy[offset] = now_us

    def is_busy(self, member: str, group: str) -> bool:
        """Whether a run is handling anything, or is to get a record again."""
        return any(
            known.busy or known.refused
            for line, known in self._lines.items()
            if (line.member, line.group) == (member, group)
        )

    def ended(self, handled: Handled) -> None:
        """The handler returned, or was cancelled."""
        self._lines[handled.line].busy.pop(handled.offset, None)

    def counts(self, handled: Handled, now_us: int, delay_us: int | None) -> bool:
        """Whether a refusal, if it arrives at once, decides when the record comes again."""
        begun_us = self._lines[handled.line].busy.get(handled.offset)
        if begun_us is None:
            # It came again meanwhile, and the handler that was given it then has returned.
            return False
        rests_us = 0
        if delay_us is not None and handled.line.group not in self.paused:
            rests_us = backoff_ms(handled.attempt) * 1_000 - HEARD_US
        return now_us - begun_us <= self._ack_wait_us + rests_us

    def refused(self, handled: Handled, now_us: int, delay_us: int | None) -> None:
        """It refused the record."""
        rest_us = backoff_ms(handled.attempt) * 1_000 if delay_us is None else delay_us
        if not self.counts(handled, now_us, delay_us):
            rest_us = 0
        self._lines[handled.line].refused[handled.offset] = now_us + rest_us

    def acked(self, handled: Handled) -> None:
        """It acknowledged the record, perhaps after it had refused it."""
        self._lines[handled.line].refused.pop(handled.offset, None)
