"""Those who want to be told of something, by whoever tells it.

Invariant: each is told once for each telling, at once, in the order in which they came, until it
stops. A listener must not fail.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Listeners(Generic[T]):
    """Bounded by the parts of a daemon: each listens once."""

    def __init__(self) -> None:
        self._listening: dict[int, Callable[[T], None]] = {}
        self._made = 0

    def add(self, listener: Callable[[T], None]) -> Callable[[], None]:
        """Tell it from now on; returns how to stop."""
        self._made += 1
        number = self._made
        self._listening[number] = listener

        def stop() -> None:
            self._listening.pop(number, None)

        return stop

    def tell(self, what: T) -> None:
        """Tell all that listen now."""
        for listener in tuple(self._listening.values()):
            listener(what)
