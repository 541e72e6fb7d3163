"""Keeps Arrow from loading pandas in the process of a driver.

Arrow loads it with the first value that it is given, wherever it is installed, to look whether the
value is one of pandas. That takes as long as some hundred thousand records do, and a driver has no
such values. Invariant: for processes of their own; in somebody else's, pandas stays theirs.
"""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType


class _NotThere(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("a driver needs no pandas", name=fullname)


def never_load_pandas() -> None:
    """From now on this process has none."""
    sys.meta_path.insert(0, _NotThere())
