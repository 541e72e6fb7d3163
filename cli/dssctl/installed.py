"""Where the files are that are installed beside the code: completions and the manual.

A wheel has them in the package; in a checkout they stand at its top.
"""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def installed(name: str) -> Path:
    """The folder of that name."""
    own = _PACKAGE / name
    return own if own.is_dir() else _PACKAGE.parents[1] / name
