"""Every system call that a daemon makes on its files, as a point at which it can be struck.

A run under `counting` tells which points there are (`points_in`); in a run under `injecting` one of
them is struck: the process is killed as it enters the call, or the call fails. strace counts the
calls of each thread separately, which does no harm: a file belongs to one thread at a time.
Invariant: the daemon stays a child of whoever started it, so exit codes and signals are its own.
"""

import asyncio
import random
import re
import traceback
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from dssd.check.directory import checked
from dssd.check.findings import Finding, Weight
from dssd.data_directory import FORMAT_NAME, DataDirectory
from support.daemon_process import DaemonEnded, DaemonProcess
from support.proof_share import FULL

CALLS = (
    *("write", "pwrite64", "pwritev", "pwritev2", "fdatasync", "fsync"),
    *("rename", "unlink", "openat", "mkdir", "ftruncate", "fallocate"),
)
"""Calls that change a directory or make it durable."""
KILL = "signal=KILL"
"""The process is killed as it enters the call, which is not done."""
FAIL = "error=EIO"
NO_ROOM = "error=ENOSPC"

FIRST_LIFE = "first"
"""The name of the socket, in the daemon's directory, at which a daemon under work listens."""

AT_ONCE = 4
"""How many runs go in parallel: each spends half of its time waiting."""
RUN_S_MAX = 180.0
SLOW = "too slow"
MISSED = "missed"
"""The call did not come: which calls are merged differs a little from run to run."""
MISSED_SHARE_MAX, MISSED_MAX = 0.2, 2
"""A share of all points in a full proof, or a number of them in a sample."""

P = TypeVar("P")

_CALL = re.compile(r"^\d+ +(\w+)\((.*)$")
_PATH = re.compile(r'[<"](/[^>"]*)')
_NUMBERED = re.compile(r"[0-9a-f]{8,}")


@dataclass(frozen=True, slots=True, order=True)
class Point:
    """The n-th call of a kind on one file, from 1."""

    call: str
    path: str
    """Its path below the data directory."""
    number: int

    def __str__(self) -> str:
        """For people."""
        return f"{self.call} {self.path} #{self.number}"

    @property
    def kind(self) -> tuple[str, str]:
        """What similar calls on similar files have in common."""
        return self.call, _NUMBERED.sub("N", self.path)


def counting(output: Path, calls: Sequence[str] = CALLS) -> list[str]:
    """The command that writes such calls of the program after it to a file."""
    return [*_strace(output, calls), "--seccomp-bpf", "-y"]


def injecting(
    point: Point, data: Path, fault: str, output: Path, also: Sequence[str] = ()
) -> list[str]:
    """The command that strikes one call of the program after it with a fault.

    It also notes calls of that kind on the file, and the ``also`` ones.
    """
    # No signal can be sent if strace stops the process only at some calls, but an error can be
    # injected.
    quick = () if fault == KILL else ("--seccomp-bpf",)
    inject = f"inject={point.call}:{fault}:when={point.number}"
    return [
        *_strace(output, [point.call, *also]),
        *quick,
        "-P",
        str(data / point.path),
        "-e",
        inject,
    ]


def points_in(output: Path, data: Path, calls: Sequence[str] = CALLS) -> list[Point]:
    """All points of a run that was counted, in their order."""
    counts: Counter[tuple[str, str]] = Counter()
    points: list[Point] = []
    for line in output.read_text(errors="replace").splitlines():
        begun = _CALL.match(line)
        if begun is None or begun[1] not in calls:
            continue
        path = _below(data, _PATH.findall(begun[2]))
        if path is not None:
            counts[begun[1], path] += 1
            points.append(Point(begun[1], path, counts[begun[1], path]))
    return points


def chosen(points: Sequence[Point], count: int) -> Sequence[Point]:
    """This many of the points, the same each time: first one of every kind, then others; or all of
    them in the full proof.
    """
    if FULL:
        return points
    chance = random.Random(count)
    kinds: dict[tuple[str, str], list[Point]] = defaultdict(list)
    for point in points:
        kinds[point.kind].append(point)
    for members in kinds.values():
        chance.shuffle(members)
    order = sorted(kinds)
    chance.shuffle(order)
    first = [kinds[kind].pop() for kind in order]
    rest = [point for kind in order for point in kinds[kind]]
    chance.shuffle(rest)
    return (first + rest)[:count]


async def lived(
    directory: Path,
    work: Callable[[str, Awaitable[int]], Awaitable[bool]],
    *,
    tracer: Sequence[str],
    program: Sequence[str],
) -> tuple[int, str]:
    """A daemon's life under some work: its exit code, and its output.

    The work gets its endpoint and its end, and returns whether it was completed; if so, the daemon
    is stopped.
    """
    try:
        arguments = serving(directory, FIRST_LIFE)
        daemon = await DaemonProcess.start(*arguments, program=program, tracer=tracer)
    except DaemonEnded as ended:
        return ended.exit_code, ended.said
    try:
        whole = await work(daemon.endpoint, daemon.wait())
        exit_code = await (daemon.stop() if whole else daemon.wait())
        return exit_code, daemon.said
    finally:
        await daemon.kill()


def serving(directory: Path, life: str) -> tuple[str, ...]:
    """Arguments of a daemon. A daemon that must be reached at once listens elsewhere: channels of a
    process to one address share how long they wait after a failure.
    """
    return ("--data-dir", str(data_in(directory)), "--listen", f"unix:{directory}/{life}")


def data_in(directory: Path) -> Path:
    """The data directory of these daemons."""
    return directory / "data"


def damage_in(data: Path) -> list[Finding]:
    """The damage that an offline check finds; empty if no daemon got as far as to begin."""
    if not (data / FORMAT_NAME).exists():
        return []
    with DataDirectory.existing(data) as directory:
        report = checked(directory, deep=True, begun=_nothing, advanced=_nothing)
    return [finding for finding in report.findings if finding.weight is Weight.DAMAGE]


async def assert_all_sound(points: Iterable[P], run: Callable[[P], Awaitable[str]]) -> None:
    """Strike each of the points; the run returns what is wrong, nothing, or `MISSED`.

    A run that takes too long beside others is repeated alone: if it hangs, it does so again.
    """
    found = await _outcomes(points, run, AT_ONCE)
    slow = [point for point, outcome in found.items() if outcome.startswith(SLOW)]
    found |= await _outcomes(slow, run, 1)
    missed = [str(point) for point, outcome in found.items() if outcome == MISSED]
    wrong = [
        f"{point}: {outcome}" for point, outcome in found.items() if outcome not in ("", MISSED)
    ]
    assert not wrong, "\n".join(wrong)
    assert len(missed) <= max(MISSED_MAX, len(found) * MISSED_SHARE_MAX), missed


async def _outcomes(
    points: Iterable[P], run: Callable[[P], Awaitable[str]], at_once: int
) -> dict[P, str]:
    room = asyncio.Semaphore(at_once)
    found: dict[P, str] = {}

    async def one(point: P) -> None:
        async with room:
            try:
                async with asyncio.timeout(RUN_S_MAX):
                    found[point] = await run(point)
            except TimeoutError:
                found[point] = f"{SLOW}: {traceback.format_exc()}"

    async with asyncio.TaskGroup() as runs:
        for point in points:
            runs.create_task(one(point), name=str(point))
    return found


def _nothing(_: int) -> None:
    """Ignore the progress of a check."""


def _strace(output: Path, calls: Sequence[str]) -> list[str]:
    quiet = ("-qq", "-e", "signal=none", "-e", f"trace={','.join(calls)}")
    return ["strace", "-D", "-f", *quiet, "-o", str(output)]


def _below(data: Path, paths: Iterable[str]) -> str | None:
    for path in paths:
        found = Path(path.removesuffix(" (deleted)"))
        if found.is_relative_to(data):
            return str(found.relative_to(data))
    return None
