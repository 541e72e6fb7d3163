"""Default data directory and socket, for daemon and client.

Invariant: both sides come to the same path whatever directory they run in; a relative
``XDG_STATE_HOME`` is ignored, as its specification has it.
"""

from pathlib import Path

from dss_core.errors import IllegalConfig

SOCKET_NAME = "dssd.sock"
OPERATORS_SOCKET_NAME = "ops.sock"
"""The operators' socket. Its name is no longer than the other one, so that it fits wherever that
fits. The daemon reserves connections and calls for it."""


def expanded(path: Path) -> Path:
    """The path with the home directory that a ``~`` at its beginning stands for.

    Raises:
        IllegalConfig: nobody of that name has one.
    """
    try:
        return path.expanduser()
    except (RuntimeError, ValueError) as homeless:  # nobody has it, or it is no name at all
        source = ascii(str(path))
        raise IllegalConfig(source=source, reason="there is no such home directory") from homeless


def default_data_dir() -> Path:
    """``$XDG_STATE_HOME/dssd``, or ``~/.local/state/dssd``, or what the system has instead.

    Raises:
        IllegalConfig: there is no home directory.
    """
    from platformdirs import user_state_path  # not where a path is given: it takes 10 ms

    try:
        return user_state_path("dssd", appauthor=False)
    except RuntimeError as homeless:
        raise IllegalConfig(source="default directory", reason=homeless) from homeless


def default_socket() -> Path:
    """The default socket of a daemon.

    Raises:
        IllegalConfig: there is no home directory.
    """
    return default_data_dir() / SOCKET_NAME
