"""How much processor time a run took, reported at its end for each file: where the suite can be
made faster.

The time of a process includes that of the children it waited for, so daemons started by a test
count for the test. Wall time would blame tests that only wait, which cost nothing while others run.

A test that spends more than five seconds and has no `@pytest.mark.slow("why")` is named in red. It
does not fail the run: beside a busy process the same work takes more processor time.

Invariant: all time of a run belongs to a file, to its start (imports and the collection of tests),
or, where the tests run in workers, to their reports.
"""

import os
import time
from collections import defaultdict
from collections.abc import Generator

import pytest

from support.proof_share import FULL

USUAL_S_MAX = 5.0
FILES_SHOWN = 25
SHOWN_S_MIN = 1.0
REASON = "slow"
"""The property of a report with the reason why a test is slow."""
SPENT = "cpu_s"


def _spent_s() -> float:
    """The time of this process, its threads, and the children that it waited for."""
    taken = os.times()
    return taken.user + taken.system + taken.children_user + taken.children_system


class CpuTimes:
    """Measures where tests run, and adds up where the run is reported."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._pid = os.getpid()
        self._marked_s = 0.0
        self._started_s = 0.0
        self._files_s: defaultdict[str, float] = defaultdict(float)
        self._unexplained: list[tuple[float, str]] = []

    def pytest_collection_finish(self) -> None:
        """Everything until here counts as the start."""
        self._started_s = self._since_mark_s()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self,
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Let the report of each phase of a test carry the time since the last report."""
        report = yield
        report.user_properties = [*report.user_properties, (SPENT, self._since_mark_s())]
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up by file, and check whether a slow test has a reason."""
        said = dict(report.user_properties)
        spent_s = said.get(SPENT, 0.0)
        assert isinstance(spent_s, float)
        self._files_s[report.nodeid.partition("::")[0]] += spent_s
        if report.when == "call" and spent_s > USUAL_S_MAX and REASON not in said and not FULL:
            self._unexplained.append((spent_s, report.nodeid))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the slow tests, the slowest files, and the sum."""
        if self._unexplained:
            terminalreporter.section("too much processor time without a reason", red=True)
            for spent_s, nodeid in self._unexplained:
                terminalreporter.line(f"{spent_s:6.1f} s  {nodeid}", red=True)
        files = self._files_s
        most = sorted(files.items(), key=lambda row: -row[1])[:FILES_SHOWN]
        shown = [row for row in most if row[1] >= SHOWN_S_MIN]
        if not shown:
            return
        terminalreporter.section("processor time by file")
        for path, spent_s in shown:
            terminalreporter.line(f"{spent_s:6.1f} s  {path}")
        rows = [(self._started_s, "start")]
        if self._config.getoption("--jobs"):
            rows.append((time.process_time() - self._started_s, "reports"))
        rows.append((sum(files.values()) + sum(spent_s for spent_s, _ in rows), "in all"))
        for spent_s, what in rows:
            terminalreporter.line(f"{spent_s:6.1f} s  {what}")

    def _since_mark_s(self) -> float:
        if os.getpid() != self._pid:
            # A forked process has spent nothing yet.
            self._pid, self._marked_s = os.getpid(), 0.0
        now_s = _spent_s()
        since_s, self._marked_s = now_s - self._marked_s, now_s
        return since_s
