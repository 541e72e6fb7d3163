"""Processes of the bench: a daemon on a fresh directory, and programs that print one result.

A program is a file of `bench/programs`; it prints one JSON object on its last line. Every process
is ended by whoever started it, whatever happens.
"""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROGRAMS = Path(__file__).parent / "programs"
START_SECONDS_MAX = 20.0
PROGRAM_SECONDS_MAX = 180.0


@dataclass(slots=True)
class Daemon:
    """A running daemon."""

    directory: Path
    process: asyncio.subprocess.Process

    @property
    def endpoint(self) -> str:
        """Where it listens."""
        return f"unix:{self.directory}/d.sock"

    async def start(self) -> None:
        """Start it on the directory and wait until it says that it listens."""
        self.process = await _spawn(self.directory)

    def kill(self) -> None:
        """kill -9."""
        self.process.send_signal(signal.SIGKILL)


async def _spawn(directory: Path) -> asyncio.subprocess.Process:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "dssd", "serve",
        "--data-dir", str(directory), "--listen", f"unix:{directory}/d.sock",
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stderr is not None
    async with asyncio.timeout(START_SECONDS_MAX):
        while b"listening" not in (line := await process.stderr.readline()):
            if not line:
                raise RuntimeError("the daemon ended before it listened")
    return process


@contextlib.asynccontextmanager
async def running_daemon() -> AsyncIterator[Daemon]:
    """A daemon on a fresh directory, which goes when the block ends."""
    directory = Path(tempfile.mkdtemp(prefix="dss-bench-"))
    daemon = Daemon(directory, await _spawn(directory))
    try:
        yield daemon
    finally:
        if daemon.process.returncode is None:
            daemon.process.terminate()
        await daemon.process.wait()
        shutil.rmtree(directory)


async def run_program(name: str, *arguments: str) -> dict[str, Any]:
    """Run a program to its end; returns the JSON object that it printed last."""
    async with started_program(name, *arguments) as program:
        async with asyncio.timeout(PROGRAM_SECONDS_MAX):
            out, _ = await program.communicate()
        if program.returncode != 0:
            raise RuntimeError(f"{name} ended with {program.returncode}")
        result: dict[str, Any] = json.loads(out.splitlines()[-1])
        return result


@contextlib.asynccontextmanager
async def started_program(name: str, *arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A program that runs beside the block and is ended with it."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(PROGRAMS / f"{name}.py"),
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(PROGRAMS.parent)},
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
