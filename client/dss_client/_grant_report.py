"""The report of a grant at one moment, and its division into pieces that the daemon takes.

Invariant: the pieces together say the same as the whole, in the order in which the daemon must get
them. `_reports_on_wire` encodes them.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

from dss_client._failure import NOTHING_SAID, Failure
from dss_client.limits import REFUSALS_A_REPORT
from dss_core.progress import Ranges

Value = TypeVar("Value")


class Nak(NamedTuple):
    """A range of offsets that are refused for one reason."""

    start: int
    end: int
    delay_ms: int | None
    """The delay, if the user chose one."""
    failure: Failure = NOTHING_SAID


@dataclass(frozen=True, slots=True)
class GrantReport:
    """What a grant reports at one moment."""

    grant: int
    acked: Ranges
    in_progress: Ranges
    handed_out: Ranges
    """Hand-outs out of turn: above the frontier, or once more below it. Without those acked
    here."""
    naks: tuple[Nak, ...]
    frontier: int
    """Every offset below it was handed out, or is masked."""
    token: int
    """Not 0: somebody waits until these acks are durable."""
    level: int = 0

    def pieces(self, ranges_max: int) -> "list[GrantReport]":
        """The same in several reports of at most so many ranges; the last one has the token.

        Naks come behind the hand-outs: the daemon accepts the nak of a record that it sent again
        only once it knows that the record was handed out again.
        """
        ranges = (self.acked, self.in_progress, self.handed_out, self.naks)
        naks_max = min(ranges_max, REFUSALS_A_REPORT)
        if sum(map(len, ranges)) <= ranges_max and len(self.naks) <= naks_max:
            return [self]
        nothing = replace(self, acked=(), in_progress=(), handed_out=(), naks=(), token=0)
        return [
            *(replace(nothing, acked=each) for each in _slices(self.acked, ranges_max)),
            *(replace(nothing, in_progress=each) for each in _slices(self.in_progress, ranges_max)),
            *(replace(nothing, handed_out=each) for each in _slices(self.handed_out, ranges_max)),
            *(replace(nothing, naks=each) for each in _slices(self.naks, naks_max)),
            replace(nothing, token=self.token),
        ]


def _slices(values: tuple[Value, ...], most: int) -> Iterator[tuple[Value, ...]]:
    return (values[at : at + most] for at in range(0, len(values), most))


def joined(naks: Iterable[Nak]) -> tuple[Nak, ...]:
    """Naks in their order; neighbours with the same delay and error are joined."""
    found: list[Nak] = []
    for nak in naks:
        if found and found[-1][1:] == (nak.start, *nak[2:]):
            found[-1] = Nak(found[-1].start, *nak[1:])
        else:
            found.append(nak)
    return tuple(found)
