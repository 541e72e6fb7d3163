"""The records of a lane that wait to be moved, and those that are being moved.

Invariant: one move is under way at a time, of at most `MOVE_RECORDS_MAX` records; pieces that
failed are first in the next one, after a pause. Pieces of main are counted in its records while
they wait. This module does not know why anything is moved.
"""

from collections.abc import Callable, Iterable

from dss_core.lane import MAIN
from dss_core.progress import Ranges
from dssd.limits import MOVE_RECORDS_MAX, REFUSED_MOVE_MS
from dssd.machines.delivery.events import MovePiece
from dssd.machines.delivery.record_states import RecordStates


class PendingMoves:
    """The moves of one lane; ``main`` has the records of its stream."""

    __slots__ = ("_main", "_pending", "_under_way", "again_ms", "leaving")

    def __init__(self, main: RecordStates) -> None:
        self._main = main
        self._pending: list[MovePiece] = []
        self._under_way: tuple[MovePiece, ...] = ()
        self.again_ms: int | None = None
        """No move begins before this time."""
        self.leaving = 0
        """How many records of main wait to be moved, or are being moved."""

    def __bool__(self) -> bool:
        """Whether something waits, or is being moved."""
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
        """A piece waits to be moved. In main it counts like a range that rests there."""
        self._pending.append(piece)
        if piece.level == MAIN:
            self._main.moving += 1
            self.leaving += piece.end - piece.start

    def of_level(self, level: int) -> Iterable[MovePiece]:
        """The pieces that are moved from the level."""
        return (each for each in (*self._under_way, *self._pending) if each.level == level)

    def is_time(self, now_ms: int) -> bool:
        """Whether the pause after a failed move is over."""
        return self.again_ms is None or now_ms >= self.again_ms

    def begin(
        self,
        left_of: Callable[[MovePiece], Iterable[MovePiece]],
        may_go: Callable[[MovePiece, int], int],
        now_ms: int,
    ) -> tuple[MovePiece, ...]:
        """Begin a move: as much as fits into one, and of each piece as much as may be moved.

        ``left_of`` gives the parts of a piece that are not done; ``may_go`` is told how many
        records of main the move has already.
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
        """These pieces failed: they are first in the next move."""
        self._pending[:0] = failed
        self.again_ms = now_ms + REFUSED_MOVE_MS

    def drop(self, done: Ranges) -> None:
        """These records of main are done: they wait no longer, and hold up reading no longer."""
        of_level = (done, (), ())
        self._keep([left for each in self._pending for left in each.left(of_level)])

    def keep(self, wanted: Callable[[MovePiece], bool]) -> None:
        """Keep these pieces waiting; the records of all others stay where they are."""
        self._keep([each for each in self._pending if wanted(each)])

    def _keep(self, pending: list[MovePiece]) -> None:
        self._pending = pending
        if not pending:
            self.again_ms = None
        self._count()

    def _count(self) -> None:
        sizes = [piece.end - piece.start for piece in self.of_level(MAIN)]
        self._main.moving, self.leaving = len(sizes), sum(sizes)
