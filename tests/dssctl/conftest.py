"""The program as its users run it, here with a daemon of its own."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from support.dssctl_call import Completed, call_dssctl
from support.served_daemon import served
from support.started_program import ProgramProcess

Run = Callable[..., Completed]


@pytest.fixture
def dssctl() -> Run:
    """Runs one command without a terminal and without a daemon."""
    return call_dssctl


@dataclass(frozen=True, slots=True)
class Daemon:
    """A daemon process of this test module."""

    endpoint: str
    process: ProgramProcess

    def dssctl(self, *arguments: str, stdin: bytes = b"") -> Completed:
        """Run one command against it."""
        return call_dssctl("--endpoint", self.endpoint, *arguments, stdin=stdin)


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    """A real daemon."""
    with served() as (endpoint, process):
        yield Daemon(endpoint, process)
