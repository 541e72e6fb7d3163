"""Loading code without looking for dead cycles in it."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def loading() -> Iterator[None]:
    """Import within: what is loaded stays, and to look through it takes a twelfth of a start."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
