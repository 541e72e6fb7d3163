"""Alerts: sends JSON about a problem to a program of the operator or an HTTP address.

A program is a file in the directory ``hooks`` of the data directory, and runs without a shell.
Creators of schedules may be remote, so they must not choose what runs here: only users who can
write into the data directory do. Invariant: an alert is tried a bounded number of times, each for a
bounded time, with pauses that double; a program's output is read up to a bound. Every failed
attempt ends with its reason.
"""

import asyncio
import json
import os
import re
import signal
import stat
import threading
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from contextlib import aclosing, suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from socket import SHUT_RDWR
from typing import Any
from urllib.parse import SplitResult, urlsplit, urlunsplit

from dss_core.errors import IllegalArgument
from dss_core.filters import check_name
from dssd.schedules.tasks.model import Say
from dssd.schedules.tasks.programs import Program, started

ALERT_BACKOFF_S = 1.0
"""Before an alert is tried again; doubles."""

ALERT_TIMEOUT_S = 30.0
"""One attempt of an alert: a pager that needs longer is down."""

ALERT_OUTPUT_BYTES_MAX = 2_048
"""Bytes kept of a hook's output."""

ALERT_SAID_BYTES_MAX = 1 << 20
"""A hook with more output is killed: nobody reads the output, and taking it costs processor
time."""


Document = Mapping[str, Any]

_INHERITED = ("PATH", "LANG", "TZ", "HOME")
"""Environment variables of the daemon that a hook gets."""

_IN_ASCII = re.compile(r"[!-~]+")


def hook_name(written: str) -> str:
    """The name of a file in the directory of hooks; may be empty.

    Raises:
        IllegalName: it is none.
    """
    if written:
        check_name(written)
    return written


def url(written: str) -> str:
    """Where an alert is sent to; may be empty.

    Raises:
        IllegalArgument: it is no HTTP address.
    """
    if written:
        _split(written)
    return written


def _split(written: str) -> SplitResult:
    if _IN_ASCII.fullmatch(written) is None:
        raise _illegal(written, "it is in ASCII without spaces: %XX in paths, xn-- in names")
    try:
        address = urlsplit(written)
        port = address.port
    except ValueError as wrong:
        raise _illegal(written, f"this is no URL: {_on_one_line(wrong)}") from wrong
    if address.scheme not in ("http", "https") or not address.hostname:
        raise _illegal(written, "it begins with http://HOST or https://HOST")
    if "@" in address.netloc:
        raise _illegal("given", "it has no user and no password, which all could read who list it")
    if port == 0:
        raise _illegal(written, "a port is 1 to 65,535")
    return address


def _illegal(written: str, rule: str) -> IllegalArgument:
    return IllegalArgument(argument=f"the address {ascii(written)[1:-1]}", rule=rule)


class AlertFailed(Exception):
    """An alert failed; its text is the reason."""


class Alerts:
    """Tells others."""

    def __init__(self, hooks: Path) -> None:
        self._hooks = hooks

    async def run_hook(self, name: str, document: Document, attempts: int, say: Say) -> None:
        """Run a program of the directory of hooks, as `run_program`."""
        await run_program(self._hooks / name, document, attempts, say)

    async def post(self, address: str, document: Document, attempts: int, say: Say) -> None:
        """Send the document by an HTTP POST.

        Raises:
            AlertFailed: no attempt was answered by a 2xx status.
        """
        target, content = _split(address), json.dumps(document).encode()

        async def once() -> str:
            return await _posted(target, content)

        await _tried(address, once, attempts, say)


async def run_program(
    path: Path, document: Document, attempts: int, say: Say, timeout_s: float | None = None
) -> None:
    """Run a program with the document on its standard input; as long as an alert, or as is said.

    Raises:
        AlertFailed: it did not succeed in any attempt, or may not be run.
    """
    _check_program(path)

    async def once() -> str:
        content = json.dumps(document).encode()
        return await _executed(path, content, say, timeout_s or ALERT_TIMEOUT_S)

    await _tried(f"the hook {path.name}", once, attempts, say)


def _check_program(path: Path) -> None:
    try:
        found = path.stat()
    except OSError as missing:
        raise AlertFailed(f"there is no hook {path}: {missing.strerror}") from missing
    if found.st_uid not in (0, os.getuid()) or found.st_mode & stat.S_IWOTH:
        raise AlertFailed(f"{path} belongs to somebody else, or everybody may write it")
    if not stat.S_ISREG(found.st_mode) or not os.access(path, os.X_OK):
        raise AlertFailed(f"{path} is no program")


async def _tried(what: str, once: Callable[[], Awaitable[str]], attempts: int, say: Say) -> None:
    """Try until an attempt returns an empty text, which means success."""
    trouble = ""
    for attempt in range(attempts):
        if attempt:
            await asyncio.sleep(ALERT_BACKOFF_S * 2 ** (attempt - 1))
        trouble = await once()
        if not trouble:
            say(f"{what} was told.")
            return
        say(f"attempt {attempt + 1} of {attempts}, {what}: {trouble}")
    raise AlertFailed(f"{what} could not be told: {trouble}")


async def _executed(path: Path, content: bytes, say: Say, timeout_s: float) -> str:
    """The failure of one run; empty: it succeeded."""
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    said: list[bytes] = []
    try:
        async with (
            asyncio.timeout(timeout_s),
            started([path], given=content, env=inherited) as program,
        ):
            trouble = await _heard(program, said) or _how_it_ended(await program.code())
    except TimeoutError:
        trouble = f"it did not end within {timeout_s:g} s"
    except OSError as failed:
        return f"it cannot be run: {failed.strerror}; is there what its first line names?"
    text = b"".join(said)[:ALERT_OUTPUT_BYTES_MAX]
    for line in text.decode(errors="replace").splitlines():
        say(line)
    return trouble


async def _heard(program: Program, said: list[bytes]) -> str:
    """Read its output and keep the first part; returns an error if there is too much, else
    empty."""
    size_bytes = 0
    async with aclosing(program.said()) as pieces:
        async for piece in pieces:
            if size_bytes < ALERT_OUTPUT_BYTES_MAX:
                said.append(piece)
            size_bytes += len(piece)
            if size_bytes > ALERT_SAID_BYTES_MAX:
                return f"it said more than {ALERT_SAID_BYTES_MAX:,} bytes"
    return ""


def _how_it_ended(code: int) -> str:
    """Empty where it succeeded."""
    if code >= 0:
        return f"it ended with {code}" if code else ""
    try:
        return f"it was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"it was ended by signal {-code}"


async def _posted(address: SplitResult, content: bytes) -> str:
    """The failure of one call; empty: it succeeded.

    It has its own thread, because the other side may block it as long as it likes, and the log
    needs the shared threads. The connection is cut at the end, so that the thread ends.
    """
    call = _Call(address, content)
    answered: Future[str] = Future()
    answered.set_running_or_notify_cancel()

    def run() -> None:
        try:
            answered.set_result(call.made())
        except BaseException as error:  # noqa: BLE001 - whoever waits has it
            answered.set_exception(error)

    threading.Thread(target=run, name="alert", daemon=True).start()
    try:
        async with asyncio.timeout(ALERT_TIMEOUT_S):
            return await asyncio.wrap_future(answered)
    except TimeoutError:
        return f"no answer within {ALERT_TIMEOUT_S:g} s"
    finally:
        call.cut()


class _Call:
    """One POST, without redirects and proxies. Only the status of the answer is read."""

    def __init__(self, address: SplitResult, content: bytes) -> None:
        self._path = urlunsplit(("", "", address.path or "/", address.query, ""))
        self._content = content
        kind = HTTPSConnection if address.scheme == "https" else HTTPConnection
        # Without a port the library looks for one in the name, and finds it in [::1].
        port = address.port or kind.default_port
        self._connection = kind(address.hostname or "", port, timeout=ALERT_TIMEOUT_S)
        self._is_cut = False

    def made(self) -> str:
        """What was wrong with it; empty where nothing was. Blocking."""
        headers = {"Content-Type": "application/json", "Connection": "close"}
        try:
            self._connection.connect()
            if self._is_cut:  # the name lookup was cut: the next attempt reports its error
                return "no answer in time"
            self._connection.request("POST", self._path, self._content, headers)
            with self._connection.getresponse() as answer:
                status = answer.status
        except (OSError, HTTPException, ValueError) as failed:
            return f"no answer: {_on_one_line(failed)}"
        finally:
            self._connection.close()
        return "" if 200 <= status < 300 else f"it was answered by {status}"

    def cut(self) -> None:
        """End it now, whatever it waits for. From any thread."""
        self._is_cut = True
        socket = self._connection.sock
        if socket is not None:
            with suppress(OSError):  # it was closed meanwhile
                socket.shutdown(SHUT_RDWR)


def _on_one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
