"""Earlier versions of this project, from its own history, as daemons and as clients.

A version brings its own files from its commit, but imports the packages of this checkout: commits
whose code does not run on them are not listed. Invariant: nothing of the repository is changed; a
version is unpacked into a directory of the test's own.
"""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pytest

from support.daemon_process import DaemonProcess
from support.prerequisites import leave_out

CHECKOUT = Path(__file__).resolve().parents[2]
CLIENT = CHECKOUT / "tests" / "scenarios" / "programs" / "client_of_any_version.py"
PACKAGES = ("bulk", "cli", "client", "core", "daemon", "proto", "spark_tasks")
HISTORY = "history"


@dataclass(frozen=True, slots=True)
class Commit:
    """The last commit of a store format whose client works with its own daemon."""

    name: str
    store_format: int

    def __str__(self) -> str:
        """For the name of a test."""
        return f"format {self.store_format}"


COMMITS = (
    Commit("08671238cf0348355a0a9108850e081d78ecb16d", 1),
    Commit("6234b6de4715f7931974fffee11a720a3f803373", 3),
    Commit("968e790d1d996775440b9193bc89e0de83c55cd0", 4),
    Commit("42b2b0ee5aba9a97bc366c3de97038d85d3257eb", 6),
    Commit("bd4c6296c20326d1abcf6bdda31367be654040b2", 7),
    Commit("05fe4aceeb7b2fe69ad6a69c1ab4060cc50f3800", 8),
    Commit("9be4e9cdec532050e7637f7da968b09c1f39faf0", 9),
    Commit("20d473ff4e56ae1043ec4cf36b14de18301ce479", 10),
    Commit("d6c9afd2c1f94f0fc6f5947e1602df5752070a92", 11),
    Commit("b4deaca0d3b03db2334643c365e4594c817974f3", 12),
    Commit("302183da079ba0fd957387412e106d89702a472a", 13),
    Commit("b6eed2a17235362ebbea14a8cc000d3fdcaf805c", 14),
    Commit("d4d5d9d1a957a2be138a00ebe3eb7b566a0497ec", 15),
    Commit("d27dc5ad22a2d0348426e632bafd793a0aea338c", 16),
)
"""No commit has a daemon of format 2: it and format 3 came at once. Of format 5 the first commits
have other tables than the last, whose own client cannot take records. Both are grown as recorded
in `test_older_directory_grows`."""


@dataclass(frozen=True, slots=True)
class Version:
    """A version that can be run: this one, or an unpacked one."""

    root: Path

    @classmethod
    def unpacked(cls, commit: Commit, into: Path) -> Self:
        """The version of a commit; the test is skipped if the history does not reach that far."""
        known = subprocess.run(
            ["git", "cat-file", "-e", f"{commit.name}^{{commit}}"],
            cwd=CHECKOUT,
            capture_output=True,
            check=False,
        )
        if known.returncode:
            leave_out(HISTORY, f"the history here does not reach commit {commit.name[:8]}")
        listed = ["git", "ls-tree", "--name-only", commit.name]
        there = subprocess.run(listed, cwd=CHECKOUT, capture_output=True, text=True, check=True)
        packages = sorted(set(PACKAGES) & set(there.stdout.split()))
        into.mkdir()
        archive = ["git", "archive", commit.name, *packages]
        packed = subprocess.run(archive, cwd=CHECKOUT, capture_output=True, check=True)
        subprocess.run(["tar", "x", "-C", into], input=packed.stdout, check=True)
        return cls(into)

    @property
    def _environment(self) -> str:
        return os.pathsep.join(str(self.root / each) for each in PACKAGES)

    @asynccontextmanager
    async def running(self, *arguments: str) -> AsyncIterator[DaemonProcess]:
        """Its daemon, which is killed at the end unless it has ended before."""
        as_itself = ("env", f"PYTHONPATH={self._environment}")
        daemon = await DaemonProcess.start(*arguments, tracer=as_itself)
        try:
            yield daemon
        finally:
            await daemon.kill()

    async def call(self, endpoint: str, *words: object) -> dict[str, Any]:
        """The output of its client."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(CLIENT),
            endpoint,
            *map(str, words),
            env={**os.environ, "PYTHONPATH": self._environment},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate()
        if process.returncode:
            pytest.fail(
                f"{' '.join(map(str, words))} ended with {process.returncode}: {err.decode()}"
            )
        done: dict[str, Any] = json.loads(out)
        return done


THIS = Version(CHECKOUT)
