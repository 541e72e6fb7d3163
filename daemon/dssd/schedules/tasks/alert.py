"""Alerts: a program of the operator's, or an HTTP call, told what is wrong as JSON.

A program is a file in the directory ``hooks`` of the data directory, and is run without a shell:
whoever may make schedules over the network must not choose what runs here, so only who can write
into the data directory does. Invariant: an alert is tried a bounded number of times, each for a
bounded time, with pauses that double; what it answers is read up to a bound.
"""

import asyncio
import http.client
import json
import os
import signal
import stat
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from dss_core.errors import IllegalArgument
from dss_core.filters import check_name
from dssd.schedules.limits import (
    ALERT_BACKOFF_S,
    ALERT_OUTPUT_BYTES_MAX,
    ALERT_REPLY_BYTES_MAX,
    ALERT_TIMEOUT_S,
)
from dssd.schedules.tasks.model import Say

Document = Mapping[str, Any]

_INHERITED = ("PATH", "LANG", "TZ", "HOME")
"""Of the environment of the daemon, what a hook gets."""


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
    if written and not written.startswith(("http://", "https://")):
        raise IllegalArgument(argument=f"the address {written}", rule="it begins with http")
    return written


class AlertFailed(Exception):
    """Nobody was told, for a reason that is its text."""


class Alerts:
    """Tells others."""

    def __init__(self, hooks: Path) -> None:
        self._hooks = hooks

    async def run_hook(self, name: str, document: Document, attempts: int, say: Say) -> None:
        """Run a program with the document on its standard input.

        Raises:
            AlertFailed: it did not succeed in any attempt, or may not be run.
        """
        path = self._checked(name)

        async def once() -> str:
            return await _executed(path, json.dumps(document).encode(), say)

        await _tried(f"the hook {name}", once, attempts, say)

    async def post(self, address: str, document: Document, attempts: int, say: Say) -> None:
        """Send the document by an HTTP POST.

        Raises:
            AlertFailed: no attempt was answered by a 2xx status.
        """
        content = json.dumps(document).encode()

        async def once() -> str:
            return await asyncio.to_thread(_posted, address, content)

        await _tried(address, once, attempts, say)

    def _checked(self, name: str) -> Path:
        path = self._hooks / name
        try:
            found = path.stat()
        except OSError as missing:
            raise AlertFailed(f"there is no hook {path}: {missing.strerror}") from missing
        if found.st_uid not in (0, os.getuid()) or found.st_mode & stat.S_IWOTH:
            raise AlertFailed(f"{path} belongs to somebody else, or everybody may write it")
        if not stat.S_ISREG(found.st_mode) or not os.access(path, os.X_OK):
            raise AlertFailed(f"{path} is no program")
        return path


async def _tried(what: str, once: Callable[[], Awaitable[str]], attempts: int, say: Say) -> None:
    """Try until it succeeds, which is told by an empty answer."""
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


async def _executed(path: Path, content: bytes, say: Say) -> str:
    """What was wrong with one run; empty where nothing was."""
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    try:
        process = await asyncio.create_subprocess_exec(
            path,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=inherited,
            start_new_session=True,
        )
    except OSError as failed:
        return f"it cannot be run: {failed.strerror}"
    try:
        async with asyncio.timeout(ALERT_TIMEOUT_S):
            said = await _talked(process, content)
            code = await process.wait()
    except TimeoutError:
        return f"it did not end within {ALERT_TIMEOUT_S:g} s"
    finally:
        await _ended(process)
    for line in said.decode(errors="replace").splitlines():
        say(line)
    return "" if code == 0 else f"it ended with {code}"


async def _talked(process: asyncio.subprocess.Process, content: bytes) -> bytes:
    """Give it the document; what it said, up to a bound."""
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(BrokenPipeError, ConnectionResetError):  # it need not read it
        process.stdin.write(content)
        await process.stdin.drain()
    process.stdin.close()
    said = b""
    while piece := await process.stdout.read(ALERT_OUTPUT_BYTES_MAX):
        said = (said + piece)[:ALERT_OUTPUT_BYTES_MAX]
    return said


async def _ended(process: asyncio.subprocess.Process) -> None:
    """Leave nothing of it running: what it started is of its session too."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """An alert goes where it was sent, and nowhere else."""

    def redirect_request(self, *_given: object, **_more: object) -> None:
        """Take it for an answer that is no success."""


def _posted(address: str, content: bytes) -> str:
    """What was wrong with one call; empty where nothing was. Blocking."""
    request = urllib.request.Request(
        address, content, {"Content-Type": "application/json"}, method="POST"
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect())
    try:
        with opener.open(request, timeout=ALERT_TIMEOUT_S) as answer:
            answer.read(ALERT_REPLY_BYTES_MAX)
            status: int = answer.status
    except urllib.error.HTTPError as refused:
        refused.close()
        status = refused.code
    except (OSError, http.client.HTTPException, ValueError) as failed:
        return f"no answer: {failed}"
    return "" if 200 <= status < 300 else f"it was answered by {status}"
