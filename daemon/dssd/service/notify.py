"""Notifies the service manager that started the daemon: sd_notify(3), a datagram of lines.

It is written here because the protocol is just these lines; the package for it was last released
years ago and swallows errors.

Invariant: a notification never blocks. Child processes do not inherit the manager's socket.
"""

import logging
import os
import socket
from collections.abc import MutableMapping
from typing import Self

BEAT_S = 10.0
"""How often the status is sent if no watchdog requires it more often."""

BEATS_PER_WATCHDOG = 3
"""Beats in the time after which the watchdog ends the daemon: two may be late."""


_LOG = logging.getLogger(__name__)


class ServiceManager:
    """The manager at a socket. Built by `found`."""

    def __init__(self, path: str, watchdog_s: float | None) -> None:
        self._path = "\0" + path[1:] if path.startswith("@") else path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self._socket.setblocking(False)
        self.beat_s = BEAT_S if watchdog_s is None else min(BEAT_S, watchdog_s / BEATS_PER_WATCHDOG)
        """How often `alive` is wanted."""

    @classmethod
    def found(cls, environment: MutableMapping[str, str]) -> Self | None:
        """The manager named by the environment, which is then removed from the environment."""
        path = environment.pop("NOTIFY_SOCKET", "")
        usec = environment.pop("WATCHDOG_USEC", "")
        pid = environment.pop("WATCHDOG_PID", "")
        if not path.startswith(("/", "@")):
            return None
        ours = usec.isdecimal() and int(usec) > 0 and pid in ("", str(os.getpid()))
        return cls(path, int(usec) / 1_000_000 if ours else None)

    def ready(self, status: str) -> None:
        """The daemon serves."""
        self._tell("READY=1", f"STATUS={status}")

    def alive(self, status: str) -> None:
        """The daemon works."""
        self._tell("WATCHDOG=1", f"STATUS={status}")

    def stopping(self) -> None:
        """The daemon ends."""
        self._tell("STOPPING=1", "STATUS=stopping")

    def close(self) -> None:
        """Tell nothing more."""
        self._socket.close()

    def _tell(self, *lines: str) -> None:
        try:
            self._socket.sendto("\n".join(lines).encode(), self._path)
        except OSError as error:
            _LOG.warning(
                "the service manager was not told %s: %s",
                lines[0],
                error,
                extra={"event": "manager.not-told"},
            )
