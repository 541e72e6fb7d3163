"""Endpoints as the configuration stores them.

Invariant: a value in the file means the same from every folder.
"""

import os.path

from dss_core.endpoints import endpoint_texts

_UNIX = "unix:"


def settled(endpoint: str) -> str:
    """Endpoints to be stored: relative paths become absolute."""
    return ",".join(map(_settled, endpoint_texts(endpoint)))


def _settled(endpoint: str) -> str:
    path = _path(endpoint)
    if not path or path.startswith(("/", "~")):
        return endpoint
    return _UNIX + os.path.abspath(path)  # noqa: PTH100 - Path has none that drops '..'


def settled_file(path: str) -> str:
    """A path to be stored: a relative one becomes absolute."""
    return path if not path or path.startswith(("/", "~")) else os.path.abspath(path)  # noqa: PTH100


def same_daemon(left: str, right: str) -> bool:
    """Whether two values name one place; with several endpoints, whether they share one."""
    return not {*map(_place, endpoint_texts(left))}.isdisjoint(map(_place, endpoint_texts(right)))


def _place(endpoint: str) -> str:
    path = _path(endpoint)
    return os.path.realpath(os.path.expanduser(path)) if path else endpoint.lower()  # noqa: PTH111


def _path(endpoint: str) -> str:
    """The path of a socket; empty for anything else."""
    return endpoint.removeprefix(_UNIX).removeprefix("//") if endpoint.startswith(_UNIX) else ""
