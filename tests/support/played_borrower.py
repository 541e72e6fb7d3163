"""A borrower of either protocol, played by a test: its inputs, and its effects."""

from collections.abc import Iterable

from dss_core.ids import StreamId
from dss_core.progress import Progress
from dssd.machines.borrower.events import (
    BorrowerEffect,
    BorrowerInput,
    DropStream,
    InstallStream,
    Received,
    SendToLeader,
    SendToRegistry,
    Standing,
    WakeAt,
)
from dssd.machines.borrower.state import BorrowerState, Holder
from dssd.machines.messages import GrantedStream, StreamReport

ME, SESSION = b"me", b"session"
LEADER = 4
"""The epoch of its leader."""
LEASE_MS = 6_000
A, B, C = StreamId(1, 0), StreamId(1, 1), StreamId(1, 2)


def granted(stream: StreamId = A, epoch: int = 2, floor: int = 10) -> GrantedStream:
    """A stream that is lent, consumed up to the floor."""
    return GrantedStream(stream, epoch, Progress(floor), floor, (), floor)


def report(
    stream: StreamId = A, epoch: int = 2, floor: int = 10, sent: int | None = None
) -> StreamReport:
    """A report of a stream that is consumed up to the floor."""
    return StreamReport(stream, epoch, Progress(floor), floor, sent=sent)


def kind_of(given: BorrowerInput) -> str:
    """The name of an input; for a received message, the message's."""
    inner = given.message if isinstance(given, Received) else given
    return type(inner).__name__


def bare(effects: Iterable[BorrowerEffect]) -> list[object]:
    """The effects, with messages without their envelope; timers and standing are left out."""
    return [
        effect.message if isinstance(effect, SendToLeader | SendToRegistry) else effect
        for effect in effects
        if not isinstance(effect, WakeAt | Standing)
    ]


class Obedient:
    """A session that holds exactly the streams that its effects tell it to."""

    def __init__(self) -> None:
        self.installed: dict[StreamId, int] = {}
        """The grant epochs."""
        self._highest: dict[StreamId, int] = {}

    def obey(self, borrower: Holder, effects: Iterable[BorrowerEffect]) -> None:
        """Carry out the effects of a step; they must fit what this session and the borrower
        hold."""
        for effect in effects:
            if isinstance(effect, InstallStream):
                stream, epoch = effect.granted.stream, effect.granted.grant_epoch
                assert stream not in self.installed
                assert epoch > self._highest.get(stream, 0)
                self.installed[stream] = self._highest[stream] = epoch
            if isinstance(effect, DropStream):
                assert self.installed.pop(effect.stream) == effect.grant_epoch
        assert self.installed == {
            stream: held.report.grant_epoch for stream, held in borrower.streams.items()
        }
        if borrower.state is BorrowerState.GONE:
            assert not self.installed
