"""Whether this process was forked from one in which a client was opened.

Invariant: what gRPC leaves of itself in such a child may hang or end it at any call, though all was
closed before; so no client is opened there.
"""

import os

from dss_core.errors import OpenedBeforeFork


class Forks:
    """Of the process."""

    def __init__(self) -> None:
        self._opened = False
        self._from = 0

    @property
    def is_child(self) -> bool:
        """Whether it was."""
        return bool(self._from)

    def refuse(self) -> None:
        """See that clients work here.

        Raises:
            OpenedBeforeFork: they do not.
        """
        if self._from:
            raise OpenedBeforeFork(process=self._from)

    def opening(self) -> None:
        """A client is opened here; raises as `refuse` does."""
        self.refuse()
        self._opened = True

    def in_child(self) -> None:
        """This process is a child of a fork."""
        if self._opened:
            self._from = os.getppid()


the_forks = Forks()
"""Those of this process."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=the_forks.in_child)
