"""What of a lane waits to be moved, and what is on its way.

Invariant: one move is under way at a time, of at most `MOVE_RECORDS_MAX` records; what came to
nothing is first in the next one, after a rest. What leaves main is counted there as long as it
waits. This module does not know why anything is moved.
"""

from collections.abc import Callable, Iterable

from dss_core.lane import MAIN
from dss_core.progress import Ranges
from dssd.limits import MOVE_RECORDS_MAX, REFUSED_MOVE_MS
from dssd.machines.delivery.events import MovePiece
from dssd.machines.delivery.record_states import RecordStates


class PendingMoves:
    """Of one lane; ``main`` are the records of its stream."""

    __slots__ = ("_main", "_pending", "_under_way", "again_ms", "leaving")

    def __init__(self, main: RecordStates) -> None:
        self._main = main
        self._pending: list[MovePiece] = []
        self._under_way: tuple[MovePiece, ...] = ()
        self.again_ms: int | None = None
        """Nothing is moved before."""
        self.leaving = 0
        """Records of main that wait to be moved, or are on their way."""

    def __bool__(self) -> bool:
        """Whether something waits, or is on its way."""
        return bool(self._pending or self._under_way)

    @property
    def wait(self) -> bool:
        """Whether something waits."""
        return bool(self._pending)

    @property
    def under_way(self) -> bool:
        """Whether a move is."""
        return bool(self._under_way)

    @property
    def records(self) -> int:
        """How many wait."""
        return sum(piece.end - piece.start for piece in self._pending)

    def add(self, piece: MovePiece) -> None:
        """It waits; what does in main counts like what rests there."""
        self._pending.append(piece)
        if piece.level == MAIN:
            self._main.moving += 1
            self.leaving += piece.end - piece.start

    def of_level(self, level: int) -> Iterable[MovePiece]:
        """What is moved from the level."""
        return (each for each in (*self._under_way, *self._pending) if each.level == level)

    def is_time(self, now_ms: int) -> bool:
        """Whether the rest after a move that came to nothing is over."""
        return self.again_ms is None or now_ms >= self.again_ms

    def begin(
        self,
        left_of: Callable[[MovePiece], Iterable[MovePiece]],
        may_go: Callable[[MovePiece, int], int],
        now_ms: int,
    ) -> tuple[MovePiece, ...]:
        """What is moved now: as much as fits into one move, and of each piece as much as may go.

        ``left_of`` says what of a piece is still to go; ``may_go`` gets what of main goes already.
        """
        self.again_ms = None
        pieces, left = self._first(left_of, may_go)
        self._pending, self._under_way = left, pieces
        if left and not pieces:
            self.again_ms = now_ms + REFUSED_MOVE_MS
        self._count()
        return pieces

    def _first(
        self,
        left_of: Callable[[MovePiece], Iterable[MovePiece]],
        may_go: Callable[[MovePiece, int], int],
    ) -> tuple[tuple[MovePiece, ...], list[MovePiece]]:
        pieces: list[MovePiece] = []
        left: list[MovePiece] = []
        room, of_main = MOVE_RECORDS_MAX, 0
        for at, piece in enumerate(self._pending):
            if not room:
                return tuple(pieces), left + self._pending[at:]
            for each in left_of(piece):
                cut = min(each.end, each.start + min(room, may_go(each, of_main)))
                if each.start < cut:
                    pieces.append(each if cut == each.end else each._replace(end=cut))
                    room -= cut - each.start
                    of_main += 0 if each.level else cut - each.start
                if cut < each.end:
                    left.append(each._replace(start=cut))
        return tuple(pieces), left

    def answered(self) -> None:
        """The move is over."""
        self._under_way = ()

    def put_back(self, failed: list[MovePiece], now_ms: int) -> None:
        """This came to nothing."""
        self._pending[:0] = failed
        self.again_ms = now_ms + REFUSED_MOVE_MS

    def drop(self, done: Ranges) -> None:
        """Of what waits to be moved from the stream, these are done: nothing is read behind them
        for longer than they wait."""
        of_level = (done, (), ())
        self._keep([left for each in self._pending for left in each.left(of_level)])

    def keep(self, wanted: Callable[[MovePiece], bool]) -> None:
        """What else waits stays where it is."""
        self._keep([each for each in self._pending if wanted(each)])

    def _keep(self, pending: list[MovePiece]) -> None:
        self._pending = pending
        if not pending:
            self.again_ms = None
        self._count()

    def _count(self) -> None:
        sizes = [piece.end - piece.start for piece in self.of_level(MAIN)]
        self._main.moving, self.leaving = len(sizes), sum(sizes)
