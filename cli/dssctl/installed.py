"""The folders of files that are installed with the code: completions and the manual.

In a wheel they are inside the package; in a checkout, at its top.
"""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def installed(name: str) -> Path:
    """The folder of that name."""
    own = _PACKAGE / name
    return own if own.is_dir() else _PACKAGE.parents[1] / name
