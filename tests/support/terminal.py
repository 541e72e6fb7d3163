"""``dssctl`` at a terminal of its own."""

import fcntl
import os
import pty
import struct
import sys
import termios

import pexpect
from ptyprocess import PtyProcess

from support.started_program import INTERPRETER

TIMEOUT_S = 60
ROWS, COLUMNS = 24, 120


class AtTerminal(pexpect.spawn):  # type: ignore[type-arg] # a class without parameters when run
    """A command line, as typed. It is forked from an interpreter that has done its imports."""

    def __init__(self, *arguments: str) -> None:
        command = ["-m", "dssctl", *arguments]
        super().__init__(sys.executable, command, timeout=TIMEOUT_S, encoding="utf-8")

    def _spawnpty(self, args: list[bytes], **_: object) -> PtyProcess:
        """Called by `pexpect` to start a process."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", ROWS, COLUMNS, 0, 0))
        try:
            arguments = [argument.decode() for argument in args[1:]]
            pid = INTERPRETER.start(arguments, os.environ, (theirs,) * 3, terminal=True)
        finally:
            os.close(theirs)
        return PtyProcess(pid, ours)
