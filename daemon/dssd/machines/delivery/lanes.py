"""The lanes of a session's window, and which of them may have something to move.

Invariant: a lane that may have something to move is asked for its next move in that step.
This module does not know what a lane moves, or why.
"""

from collections.abc import Callable, Sequence

from dss_core.lane import RETRY
from dss_core.progress import Ranges, normalised
from dssd.machines.delivery.events import (
    DeliveryEffect,
    EntriesRead,
    Installed,
    LaneOpened,
    Move,
    Moved,
    Nak,
    StreamSealed,
    TakeBack,
    TakenBack,
)
from dssd.machines.delivery.held_back import SuspectTurn
from dssd.machines.delivery.lane import Lane
from dssd.machines.delivery.outstanding import GivenBack, SentRange
from dssd.machines.delivery.retry import Resting
from dssd.machines.delivery.stream import DeliveredStream


class Lanes:
    """By the number of the grant."""

    def __init__(self) -> None:
        self._lanes: dict[int, Lane] = {}
        self._busy: dict[int, Lane] = {}
        """Those that may have something to move."""
        self._put_off_ms: int | None = None

    def install(
        self,
        given: Installed,
        main: DeliveredStream,
        resting: Resting,
        suspects: SuspectTurn,
        now_ms: int,
    ) -> Lane:
        """A stream with queues was lent."""
        lane = self._lanes[given.grant] = Lane(given, main, resting, now_ms)
        for part in lane.parts:
            part.records.waiting.turn = suspects
        return lane

    def of(self, stream: DeliveredStream) -> Lane | None:
        """The lane that a stream is a part of."""
        return None if stream.lane is None else self._lanes[stream.lent]

    def sealed(self, given: StreamSealed) -> None:
        """The stream of a lane ends there."""
        lane = self._lanes.get(given.grant)
        if lane is not None:
            lane.main.records.sealed_end = given.end

    def forget(self, grant: int) -> None:
        """The grant is over."""
        lane = self._lanes.pop(grant, None)
        if lane is not None:
            lane.close()
        self._busy.pop(grant, None)

    def take_read(self, given: EntriesRead | LaneOpened, now_ms: int) -> Lane | None:
        """Entries of the queues, or the end of them, which opens the lane and returns it."""
        lane = self._lanes.get(given.grant)
        if lane is None or lane.is_open:
            return None
        if isinstance(given, EntriesRead):
            lane.take_entries(given)
            return None
        lane.opened(now_ms, given.dead_size)
        self._busy[given.grant] = lane
        return lane

    def take_moved(self, given: Moved, now_ms: int) -> Lane | None:
        """A move was answered; its lane, if it is still there."""
        lane = self._lanes.get(given.grant)
        if lane is not None:
            lane.take_moved(given, now_ms)
            self._busy[given.grant] = lane
        return lane

    def refuse(
        self,
        stream: DeliveredStream,
        naks: Sequence[Nak],
        effects: list[DeliveryEffect],
        now_ms: int,
    ) -> Sequence[GivenBack]:
        """The client refused these; returns those whose credit comes back."""
        freed: list[GivenBack] = [*stream.records.refuse(naks, now_ms)]
        lane = self.of(stream)
        if lane is not None and lane.keyed is not None and naks:
            failed = () if stream.level else stream.records.failed or ()
            followers, more = lane.keyed.refused(failed)
            freed += more
            named = normalised((*((nak.start, nak.end) for nak in naks), *followers))
            effects.append(TakeBack(stream.grant, named))
        self._take_failed(stream, now_ms)
        return freed

    def expire(
        self,
        stream: DeliveredStream,
        effects: list[DeliveryEffect],
        now_ms: int,
        *,
        blamed: bool,
    ) -> list[SentRange]:
        """Ack waits may have run out; returns those whose credit comes back."""
        lane = self.of(stream)
        if lane is None or lane.keyed is None:
            freed = stream.records.expire(now_ms, blamed=blamed)
        else:
            freed, asks = lane.keyed.expire(stream.level, now_ms, blamed=blamed)
            effects += asks
        self._take_failed(stream, now_ms)
        return freed

    def taken_back(
        self, given: TakenBack, effects: list[DeliveryEffect], now_ms: int
    ) -> tuple[DeliveredStream, Sequence[GivenBack]] | None:
        """The client answered; returns the failed records' stream, and whose credit comes back."""
        lane = self._lanes.get(given.grant)
        if lane is None or lane.keyed is None:
            return None
        taken = lane.keyed.taken_back(given, now_ms)
        if taken is None:
            return None
        stream, untold, freed = taken
        if untold:
            effects.append(TakeBack(stream.grant, untold))
        self._take_failed(stream, now_ms)
        self._busy[given.grant] = lane
        return stream, freed

    def go_on(self, stream: DeliveredStream) -> int | None:
        """The stream may have moved on; returns when its lane has something to do."""
        lane = self._lanes.get(stream.lent)
        if lane is None or lane.keyed is None:
            return None
        if lane.go_on():
            self._busy[stream.lent] = lane
        times = (lane.next_ms(), lane.retry.next_ms())
        return min((at_ms for at_ms in times if at_ms is not None), default=None)

    def _take_failed(self, stream: DeliveredStream, now_ms: int) -> None:
        """Records of a stream may have failed."""
        lane = self.of(stream)
        if lane is not None and stream.records.failed:
            lane.take_failed(now_ms)
            self._busy[stream.lent] = lane

    def acks_of(self, stream: DeliveredStream, acked: Ranges, now_ms: int) -> Ranges:
        """The acks of a stream with a lane that count; entries between them may be copied away."""
        lane = self._lanes[stream.lent]
        if stream.level == RETRY and lane.copy_forward(now_ms):
            self._busy[stream.lent] = lane
        return lane.acks_of(stream.level, acked)

    def moves(self, now_ms: int, offer: Callable[[DeliveredStream], None]) -> list[Move]:
        """The moves to begin now. Records being moved hold up less: the streams may read on."""
        if not self._busy:
            return []
        begun = [
            (lane.main, move) for lane in self._busy.values() if (move := lane.next_move(now_ms))
        ]
        times = (lane.again_ms for lane in self._busy.values())
        self._put_off_ms = min((at_ms for at_ms in times if at_ms is not None), default=None)
        self._busy.clear()
        for stream, _ in begun:
            offer(stream)
        return [move for _, move in begun]

    def put_off_ms(self) -> int | None:
        """When moves for which there was no room are tried again; told once."""
        at_ms, self._put_off_ms = self._put_off_ms, None
        return at_ms

    def next_ms(self) -> int | None:
        """When a lane has something to do by itself."""
        times = (lane.next_ms() for lane in self._lanes.values())
        return min((at_ms for at_ms in times if at_ms is not None), default=None)

    def wake(self, now_ms: int) -> None:
        """Wake the lanes whose time has come."""
        for grant, lane in self._lanes.items():
            at_ms = lane.next_ms()
            if at_ms is not None and at_ms <= now_ms:
                lane.wake(now_ms)
                self._busy[grant] = lane
