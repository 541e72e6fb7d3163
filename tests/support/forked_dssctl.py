"""A program ``dssctl`` for shells; each start is forked from the `ready_interpreter`.

If a shell starts Python anew for a command, imports take most of the time. Instead the shell starts
a program that hands over its streams, arguments, variables and directory, waits, and exits with the
command's code. Invariant: a command reads and writes the shell's own streams, so pipes break and
files fill as they otherwise would.
"""

import json
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

from support.daemon_process import short_directory
from support.started_program import INTERPRETER

START_BYTES_MAX = 1 << 17
STREAMS = 3
HANDED_OVER = """\
#!{python} -ISs
import json, os, socket, sys
start = [sys.argv[1:], dict(os.environ), os.getcwd()]
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asked:
    asked.connect({path!r})
    socket.send_fds(asked, [json.dumps(start).encode()], [0, 1, 2])
    for stream in 0, 1, 2:
        os.close(stream)
    told = asked.recv(1)
os._exit(told[0])
"""


@contextmanager
def forked_dssctl(folder: Path) -> Iterator[None]:
    """A program ``dssctl`` in this folder, as long as the block lasts."""
    with short_directory() as home, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listens:
        path = home / "s"
        listens.bind(str(path))
        listens.listen()
        program = folder / "dssctl"
        program.write_text(HANDED_OVER.format(python=sys.executable, path=str(path)))
        program.chmod(0o755)
        answers = Thread(target=_answer, args=(listens,), name="starts of dssctl")
        answers.start()
        try:
            yield
        finally:
            listens.shutdown(socket.SHUT_RDWR)
            answers.join()


def _answer(listens: socket.socket) -> None:
    runs: list[Thread] = []
    while True:
        try:
            asked, _ = listens.accept()
        except OSError:
            break  # Nobody listens any more.
        runs.append(Thread(target=_run, args=(asked,), name="a run of dssctl"))
        runs[-1].start()
    for run in runs:
        run.join()


def _run(asked: socket.socket) -> None:
    with asked:
        message, streams, _, _ = socket.recv_fds(asked, START_BYTES_MAX, STREAMS)
        arguments, variables, directory = json.loads(message)
        try:
            command = ["-m", "dssctl", *arguments]
            pid = INTERPRETER.start(command, variables, streams, directory=directory)
        finally:
            for stream in streams:
                os.close(stream)
        _, status = os.waitpid(pid, 0)
        code = os.waitstatus_to_exitcode(status)
        asked.send((code if code >= 0 else 128 - code).to_bytes())
