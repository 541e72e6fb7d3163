"""A list of callbacks that one part calls for others.

Invariant: each call of `tell` calls each listener once, synchronously, in the order of
registration. A listener must not fail.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Listeners(Generic[T]):
    """Bounded by the number of parts of a daemon: each listens once."""

    def __init__(self) -> None:
        self._listening: dict[int, Callable[[T], None]] = {}
        self._made = 0

    def add(self, listener: Callable[[T], None]) -> Callable[[], None]:
        """Call it from now on; returns a function that removes it."""
        self._made += 1
        number = self._made
        self._listening[number] = listener

        def stop() -> None:
            self._listening.pop(number, None)

        return stop

    def tell(self, what: T) -> None:
        """Call all present listeners."""
        for listener in tuple(self._listening.values()):
            listener(what)
