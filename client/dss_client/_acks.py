"""The offsets of a grant that the user acknowledged one by one, until they are reported.

Most acks come in order. These form a run, and each costs a comparison and an addition; a list of
all would cost memory, and a pass over it for each report. Invariant: the first ack after a report
tells the grant that there is something to report.
"""

from collections.abc import Callable, Iterable, Sequence

from dss_core.progress import Range, Ranges, normalised

_NO_RUN = -1


class Acks:
    """The acks since the last report."""

    __slots__ = ("_closed", "_others", "_run_start", "_touch", "_watcher", "run_end")

    def __init__(self, touch: Callable[[], None]) -> None:
        self.run_end = _NO_RUN
        """The offset after the run; an ack of just this offset may raise it by one."""
        self._run_start = _NO_RUN
        self._others: list[int] = []
        """Acks out of order, perhaps repeated."""
        self._closed: list[Range] = []
        """Runs that ended since acks are watched."""
        self._touch = touch
        self._watcher: Callable[[int], bool] | None = None

    def watch(self, watcher: Callable[[int], bool] | None) -> None:
        """Call ``watcher`` with each ack as it is given, or no more; it returns whether the ack
        counts."""
        self._watcher = watcher
        if self.run_end != _NO_RUN:
            self._closed.append((self._run_start, self.run_end))
            self.run_end = _NO_RUN

    def leave(self, offset: int) -> None:
        """Acknowledge one offset."""
        if self._watcher is not None:
            if self._watcher(offset):
                if not self._others:
                    self._touch()
                self._others.append(offset)
        elif self.run_end == _NO_RUN:
            self._touch()
            self._run_start, self.run_end = offset, offset + 1
        elif offset == self.run_end:
            self.run_end = offset + 1
        else:
            self._others.append(offset)

    def leave_all(self, offsets: Sequence[int]) -> None:
        """Acknowledge some offsets, at least one, in any order."""
        if self._watcher is not None:
            self._leave_watched(offsets, self._watcher)
            return
        if not self:
            self._touch()
        first, last = offsets[0], offsets[-1]
        if self.run_end in (_NO_RUN, first) and offsets == list(range(first, last + 1)):
            self._run_start = first if self.run_end == _NO_RUN else self._run_start
            self.run_end = last + 1
        else:
            self._others.extend(offsets)

    def _leave_watched(self, offsets: Iterable[int], watcher: Callable[[int], bool]) -> None:
        for offset in offsets:
            if watcher(offset):
                if not self._others:
                    self._touch()
                self._others.append(offset)

    def run_has(self, first: int, last: int) -> bool:
        """Whether both offsets are in the run, and so all between them."""
        return self._run_start <= first and last < self.run_end

    def take(self) -> Ranges:
        """Take all acks, as ranges; they then count as reported."""
        parts: list[Range] = []
        if self.run_end != _NO_RUN:
            parts.append((self._run_start, self.run_end))
            self.run_end = _NO_RUN
        if self._others:
            parts.extend(offset_ranges(self._others))
            self._others.clear()
        if self._closed:
            parts += self._closed
            self._closed.clear()
        return normalised(parts) if len(parts) > 1 else tuple(parts)

    def __contains__(self, offset: int) -> bool:
        """Whether the offset is acknowledged, and not reported yet."""
        return (
            self._run_start <= offset < self.run_end
            or offset in self._others
            or any(start <= offset < end for start, end in self._closed)
        )

    def __len__(self) -> int:
        """How many acks were given, each repetition counted."""
        run = 0 if self.run_end == _NO_RUN else self.run_end - self._run_start
        return run + len(self._others) + sum(end - start for start, end in self._closed)


def offset_ranges(offsets: list[int]) -> Ranges:
    """Offsets, in any order and perhaps repeated, as ranges."""
    # In order and without a gap, by far the usual case, cost one comparison in C.
    first, last = offsets[0], offsets[-1]
    if last - first + 1 == len(offsets) and offsets == list(range(first, last + 1)):
        return ((first, last + 1),)
    distinct = set(offsets)
    first, last = min(distinct), max(distinct)
    if last - first + 1 == len(distinct):
        return ((first, last + 1),)
    return normalised((offset, offset + 1) for offset in distinct)
