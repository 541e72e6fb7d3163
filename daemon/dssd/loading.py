"""Loading the code of the daemon: without looking for dead cycles in it, and without pandas.

Arrow loads pandas, where that is installed, with the first array that it makes: half a second of
the start, and 40 MB, for what no daemon uses. Where it is loaded already, nothing is hidden.
"""

import gc
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from types import ModuleType

HIDDEN = "pandas"


class _Hider:
    """A finder that finds nothing, and ends the search for what is hidden."""

    @staticmethod
    def find_spec(
        name: str, _path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Leave the search to other finders, or end it.

        Raises:
            ModuleNotFoundError: it is hidden.
        """
        if name == HIDDEN:
            raise ModuleNotFoundError(f"{name} is not loaded into a daemon", name=name)
        return None


@contextmanager
def loading() -> Iterator[None]:
    """Import within: what is loaded stays, and to look through it takes a tenth of a start."""
    gc.disable()
    sys.meta_path.insert(0, _Hider)
    try:
        yield
        _let_arrow_look()
    finally:
        sys.meta_path.remove(_Hider)
        # Else the first look comes at once, and is at all that was loaded.
        gc.freeze()
        gc.enable()


def _let_arrow_look() -> None:
    """Arrow looks for pandas once: here it finds none, and no frame waits for it later."""
    if arrow := sys.modules.get("pyarrow"):
        arrow.array(())
