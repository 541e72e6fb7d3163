"""Imports the code of the daemon without garbage collection and without pandas.

Arrow imports pandas, if installed, when it makes its first array: that costs half a second and 40
MB, and no daemon uses it. If pandas is loaded already, nothing is hidden.
"""

import gc
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from types import ModuleType

HIDDEN = "pandas"


class _Hider:
    """An import finder that reports hidden modules as missing."""

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
    """Import inside this block, without the garbage collector: modules stay, and scanning them
    takes a tenth of a start."""
    gc.disable()
    sys.meta_path.insert(0, _Hider)
    try:
        yield
        _let_arrow_look()
    finally:
        sys.meta_path.remove(_Hider)
        # Otherwise the first collection would run at once, over all loaded modules.
        gc.freeze()
        gc.enable()


def _let_arrow_look() -> None:
    """Arrow looks for pandas once. Here it finds none, so no frame waits for that search later."""
    if arrow := sys.modules.get("pyarrow"):
        arrow.array(())
