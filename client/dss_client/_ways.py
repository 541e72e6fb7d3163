"""The endpoints by which one daemon is reached: which of them is used now, and what comes next.

Invariant: a loss moves on from the endpoint that was lost, and from no other, however many calls
were lost with it. It knows nothing of channels.
"""


class Ways:
    """The ways, numbered in the order in which they were given."""

    def __init__(self, count: int) -> None:
        self.now = 0
        self._count = count
        self._tried = 0
        """The ways that did not answer since one did."""

    def lost(self, way: int) -> None:
        """Nobody answers by this way."""
        if way == self.now:
            self.now = (way + 1) % self._count
            self._tried += 1

    def heard(self) -> None:
        """The daemon has answered."""
        self._tried = 0

    def is_another_left(self) -> bool:
        """Whether a way was not tried yet; if not, the next call begins a new round."""
        if self._tried < self._count:
            return self._tried > 0
        self._tried = 0
        return False
