"""`--jobs N`: the tests in N processes, forked from the one that has collected them.

To import and collect all tests takes thirteen seconds of processor time, which independent workers
would each spend. A fork costs next to nothing, so there may be more workers than cores: many tests
wait, for leases and for other processes.

The work is cut into units. A unit is a test, or the tests of a file that are marked `together`
because they share what is slow to make, or those of all files that are marked ``together("NAME")``.
Units that nobody has taken lie in a pipe, from which each worker takes the next one, in the order
of the collection.

Invariant: each test is reported once. A test whose worker ends during it has failed, and another
worker does the rest of that worker's unit.
"""

import atexit
import fcntl
import os
import signal
import sys
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any, NoReturn, cast

import pytest

TOGETHER = "together"
NUMBER_BYTES = 4
PATIENCE_S = ((1.0, signal.SIGINT), (10.0, signal.SIGKILL))
"""How long workers may take to end once nobody listens to them, and what they are told then."""
SILENT = ("terminalreporter", "terminalprogress")
"""Plugins that talk to a terminal, which only one process may do."""

Told = tuple[list[int], list[dict[str, Any]]]
"""The tests that a worker took, or one that it has done with its reports."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option that asks for workers."""
    parser.addoption("--jobs", type=int, default=0, help="in how many processes the tests run")


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line(
        "markers", f"{TOGETHER}(name): one process runs all such tests of a file, or of that name"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run the tests in workers, if the option asks for them."""
    jobs = min(session.config.getoption("--jobs"), len(session.items))
    if jobs == 0 or session.testsfailed or session.config.option.collectonly:
        return None
    if terminal := session.config.pluginmanager.getplugin("terminalreporter"):
        terminal.showfspath = False
    Forks(session).run(jobs)
    return True


def units_of(items: Iterable[pytest.Item]) -> list[list[int]]:
    """The tests' numbers, cut into units; a unit is placed where its first test is."""
    units: dict[str, list[int]] = {}
    for number, item in enumerate(items):
        together = item.get_closest_marker(TOGETHER)
        name = item.nodeid if together is None else next(iter(together.args), str(item.path))
        units.setdefault(name, []).append(number)
    return list(units.values())


class Left:
    """The units that nobody has taken: whoever reads a unit's number from the pipe has it."""

    def __init__(self, units: Sequence[list[int]]) -> None:
        self._units = units
        self._reads, writes = os.pipe()
        fcntl.fcntl(writes, fcntl.F_SETPIPE_SZ, NUMBER_BYTES * len(units))
        os.write(writes, b"".join(unit.to_bytes(NUMBER_BYTES) for unit in range(len(units))))
        os.close(writes)

    def take(self) -> list[int]:
        """The tests of the next unit; none when all are taken."""
        number = os.read(self._reads, NUMBER_BYTES)
        return self._units[int.from_bytes(number)] if number else []

    def drop(self) -> None:
        """Empty the pipe, so that nobody gets another unit."""
        while os.read(self._reads, 1 << 16):
            pass


@dataclass(slots=True)
class Worker:
    """A process that runs tests, as seen by the process that forked it."""

    pid: int
    taken: list[int] = field(default_factory=list)
    """The tests that it has not reported yet, the running one first."""


class Forks:
    """All workers of a run."""

    def __init__(self, session: pytest.Session) -> None:
        self._session = session
        self._left = Left(units_of(session.items))
        self._workers: dict[Connection, Worker] = {}
        self._unreported = set(range(len(session.items)))

    def run(self, jobs: int) -> None:
        """Let this many workers run all tests, and report their results."""
        session = self._session
        try:
            for _ in range(jobs):
                self._fork([])
            while self._workers:
                for pipe in wait(list(self._workers)):
                    assert isinstance(pipe, Connection)
                    self._hear(pipe)
                if session.shouldfail or session.shouldstop:
                    self._left.drop()
        finally:
            self._left.drop()
            self._end()
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
        if self._unreported:
            raise session.Failed(f"{len(self._unreported)} tests were not run")

    def _fork(self, taken: list[int]) -> None:
        # Made once, before there are workers: whoever makes it empties it.
        _folders_of(self._session.config).getbasetemp()
        hears, tells = Pipe(duplex=False)
        pid = os.fork()
        if pid == 0:
            for others in (hears, *self._workers):
                others.close()
            _work(self._session, tells, taken, self._left)
        tells.close()
        self._workers[hears] = Worker(pid)

    def _hear(self, pipe: Connection) -> None:
        worker = self._workers[pipe]
        try:
            numbers, reports = pipe.recv()
        except (EOFError, OSError):
            self._ended(pipe)
            return
        if not reports:
            worker.taken += numbers
            return
        [number] = numbers
        worker.taken.remove(number)
        hook = self._session.config.hook
        made = (
            hook.pytest_report_from_serializable(config=self._session.config, data=data)
            for data in reports
        )
        self._report(number, made)

    def _ended(self, pipe: Connection) -> None:
        worker = self._workers.pop(pipe)
        pipe.close()
        _, status = os.waitpid(worker.pid, 0)
        if not worker.taken:
            return
        broken, *left = worker.taken
        item = self._session.items[broken]
        why = f"its process ended: {os.waitstatus_to_exitcode(status)}"
        self._report(
            broken, [pytest.TestReport(item.nodeid, item.location, {}, "failed", why, "call")]
        )
        self._fork(left)

    def _report(self, number: int, reports: Iterable[pytest.TestReport]) -> None:
        self._unreported.remove(number)
        item, hook = self._session.items[number], self._session.config.hook
        hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in reports:
            hook.pytest_runtest_logreport(report=report)
        hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)

    def _end(self) -> None:
        """Let workers stop what they are doing after the run was given up: nobody reads their
        reports."""
        ends = {}
        for pipe, worker in self._workers.items():
            pipe.close()
            ends[os.pidfd_open(worker.pid)] = worker.pid
        for patience_s, then in PATIENCE_S:
            while ends and (ended := wait(list(ends), patience_s)):
                for end in ended:
                    assert isinstance(end, int)
                    os.waitpid(ends.pop(end), 0)
                    os.close(end)
            for pid in ends.values():
                os.kill(pid, then)


def _work(session: pytest.Session, tells: Connection, taken: list[int], left: Left) -> NoReturn:
    """Be a worker, from the fork to the end of the process."""
    atexit._clear()  # Exit functions belong to the process that forked this one.
    status = 1
    try:
        _detach(session.config)
        _run_tests(session, tells, taken, left)
        status = 0
    except (KeyboardInterrupt, BrokenPipeError):
        session._setupstate.teardown_exact(None)
    except BaseException:  # noqa: BLE001 - told here, for nobody else is left to be told
        traceback.print_exc()
    finally:
        atexit._run_exitfuncs()
        sys.stderr.flush()
        os._exit(status)


def _detach(config: pytest.Config) -> None:
    """Share nothing with other processes that tests write to."""
    manager = config.pluginmanager
    for name in SILENT:
        if manager.has_plugin(name):
            manager.unregister(name=name)
    capture = manager.getplugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    capture.suspend_global_capture()
    factory = _folders_of(config)
    factory._given_basetemp, factory._basetemp = factory.getbasetemp() / f"of-{os.getpid()}", None


def _folders_of(config: pytest.Config) -> pytest.TempPathFactory:
    return cast(pytest.TempPathFactory, config._tmp_path_factory)  # type: ignore[attr-defined]


class _Reports:
    """Sends a worker's reports."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self.told: list[dict[str, Any]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Make a report ready to be sent."""
        hook = self._config.hook
        self.told.append(hook.pytest_report_to_serializable(config=self._config, report=report))


def _run_tests(session: pytest.Session, tells: Connection, taken: list[int], left: Left) -> None:
    reports = _Reports(session.config)
    session.config.pluginmanager.register(reports)
    waiting: list[int] = []

    def take(numbers: list[int]) -> None:
        waiting.extend(numbers)
        if numbers:
            tells.send((numbers, []))

    take(taken or left.take())
    while waiting:
        number = waiting.pop(0)
        if not waiting:
            # How long fixtures are kept depends on the next test.
            take(left.take())
        behind = session.items[waiting[0]] if waiting else None
        session.config.hook.pytest_runtest_protocol(item=session.items[number], nextitem=behind)
        tells.send(([number], reports.told))
        reports.told = []
