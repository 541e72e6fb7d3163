"""What holds for every test, and what a run says at its end.

Hypothesis runs the same examples each time, and says what to reproduce on failure. Ctrl-C works
in the programs that tests start, also where the tests run in the background: a shell starts
background jobs with the signal ignored, and programs inherit that.

A test may take five seconds; one that takes longer carries `@pytest.mark.slow("why")`. The end of a
run names those that do not, and the proof that this machine cannot run; a run fails where one takes
that much of a processor (`support.cpu_times`).
"""

import gc
import os
import signal
import sys
import tempfile
from collections import Counter
from pathlib import Path

# Before anything loads gRPC: its fork handlers break the child of a `fork` that is about to `exec`,
# as terminals are opened. Nothing here forks without that.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"

import pytest
from hypothesis import settings

from support.cpu_times import REASON, USUAL_S_MAX, CpuTimes
from support.prerequisites import LEFT_OUT, need_strace
from support.proof_share import share

# Hundreds of programs start in a run. Where an image of a container forbids compiled files, each of
# them would compile all that it imports: a third of the time of the run.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Lists keep names for completion, which must not be those of the user who runs the tests.
os.environ["XDG_CACHE_HOME"] = str(Path(tempfile.gettempdir()) / f"dss-tests-cache-{os.getuid()}")

settings.register_profile(
    "dss", max_examples=share(8, 100), deadline=None, derandomize=True, print_blob=True
)
settings.load_profile("dss")

# What is collected stays: to look for dead cycles in it takes a tenth of its time.
gc.disable()

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

pytest_plugins = ["support.forked_run"]

TESTS = Path(__file__).parent
READ_ONCE = {
    str(TESTS / path)
    for path in (
        "dss_sim/mutants/test_mutants.py",
        "dss_sim/test_small_limits.py",
        "repo/test_limits.py",
    )
}
"""Files whose tests share what the first of them has read of all sources."""
SHARED_BY_ALL = ("spark",)
"""Fixtures of scope `session` that cost too much to be made by each worker."""


def pytest_configure(config: pytest.Config) -> None:
    """Let the run tell where its time went."""
    config.pluginmanager.register(CpuTimes(config))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the slow tests, whose reports carry the reason, and with what stays together."""
    ranks: dict[pytest.Item, int] = {}
    for item in items:
        ranks[item] = 2
        if shared := shared_by_all(item):
            item.add_marker(pytest.mark.together(shared))
            ranks[item] = 0
        elif str(item.path) in READ_ONCE or shares_a_fixture(item):
            item.add_marker("together")
            ranks[item] = 1
        if mark := item.get_closest_marker("slow"):
            item.user_properties.append((REASON, mark.args[0]))
            ranks[item] = 0
    items.sort(key=ranks.__getitem__)


def shared_by_all(item: pytest.Item) -> str | None:
    """The fixture that is made once for all files, a session of Spark for one."""
    if not isinstance(item, pytest.Function):
        return None
    return next((name for name in SHARED_BY_ALL if name in item.fixturenames), None)


def shares_a_fixture(item: pytest.Item) -> bool:
    """Whether it needs what is made once for its file: a daemon, mostly."""
    if not isinstance(item, pytest.Function):
        return False
    found = item._fixtureinfo.name2fixturedefs.values()
    return any(definition.scope == "module" for *_, definition in found)


def pytest_collection_finish() -> None:
    """Let collections of garbage pass over what is there before the first test."""
    gc.freeze()
    gc.enable()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leave out what needs strace where there is none."""
    if item.get_closest_marker("needs_strace"):
        need_strace()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which proof was left out, and which tests took long without a reason."""
    stats = terminalreporter.stats
    skipped = [str(report.longrepr[2]) for report in stats.get("skipped", ())]
    reasons = Counter(text.partition(LEFT_OUT)[2] for text in skipped if LEFT_OUT in text)
    if reasons:
        terminalreporter.section("PROOF LEFT OUT", sep="!", red=True, bold=True)
        for why, count in reasons.items():
            terminalreporter.line(f"{count} tests did not run: {why}", red=True)
    slow = [
        report
        for report in stats.get("passed", ())
        if report.duration > USUAL_S_MAX and REASON not in dict(report.user_properties)
    ]
    if slow:
        terminalreporter.section(f"over {USUAL_S_MAX:g} s without a reason")
        for report in slow:
            terminalreporter.line(f"{report.duration:6.1f} s  {report.nodeid}")
