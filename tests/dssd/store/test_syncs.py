"""What reaches the disk, and when, as strace sees it."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Program = Callable[..., list[str]]
COMMITS = "commit_through_errors"


def traced(
    strace: str, calls: str, log: Path, command: list[str], environment: dict[str, str]
) -> str:
    done = subprocess.run(
        [strace, "-f", "-qq", "-o", str(log), *calls.split(), *command],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_thousand_concurrent_commits_share_their_syncs(
    strace: str, program: Program, environment: dict[str, str], tmp_path: Path
) -> None:
    log = tmp_path / "strace.log"
    command = program("thousand_commits", tmp_path / "store.sqlite")
    output = json.loads(traced(strace, "-e trace=fdatasync,fsync", log, command, environment))

    syncs = re.findall(r"^\d+ +(?:fdatasync|fsync)\(", log.read_text(), re.MULTILINE)
    assert 1 <= len(syncs) <= 50
    outcomes, written = output["outcomes"], dict(output["written"])
    assert [outcomes[at] for at in range(0, 1_000, 10)] == [True] * 100
    kept = {at: outcomes[at][0] for at in range(1_000) if at % 10}
    assert {at: version for at, version in written.items() if at != 1_000} == kept
    assert len(set(kept.values())) == 900


def test_no_commit_is_acknowledged_before_its_sync(
    strace: str, program: Program, environment: dict[str, str], tmp_path: Path
) -> None:
    log = tmp_path / "strace.log"
    command = program("commit_and_tell", tmp_path / "store.sqlite", 1, 20)
    traced(strace, "-e trace=fdatasync,write -e write=1", log, command, environment)

    syncs = 0
    acknowledged = 0
    for line in log.read_text().splitlines():
        if re.search(r"fdatasync(\(\d+\)| resumed>\)) += 0", line):
            syncs += 1
        elif "acknowledged" in line and "write(1" in line:
            acknowledged += 1
            assert syncs >= acknowledged
    assert acknowledged == 20


@pytest.mark.parametrize("fails_at", [16, 21])
def test_an_io_error_stops_the_store_for_good(
    strace: str, program: Program, environment: dict[str, str], tmp_path: Path, fails_at: int
) -> None:
    command = program(COMMITS, tmp_path / "store.sqlite", 12)
    calls = f"-e trace=fdatasync -e inject=fdatasync:error=EIO:when={fails_at}+"
    log = tmp_path / "strace.log"
    output = json.loads(traced(strace, calls, log, command, environment))

    outcomes = output["outcomes"]
    served = outcomes.count("ok")
    assert 0 < served < 12
    assert outcomes == ["ok"] * served + ["DSS5007"] * (12 - served)
    assert output["reads"] == outcomes
    assert len(output["told"]) == 1
    assert "SQLITE_IOERR" in output["told"][0]


@pytest.mark.parametrize("fails_at", [1, 3])
def test_a_new_store_that_cannot_be_synced_is_not_opened(
    strace: str, program: Program, environment: dict[str, str], tmp_path: Path, fails_at: int
) -> None:
    # The second sync is that of the directory, which SQLite does not look at.
    fault = f"inject=fdatasync:error=EIO:when={fails_at}"
    command = program(COMMITS, tmp_path / "store.sqlite", 1)
    done = subprocess.run(
        [strace, "-f", "-qq", "-e", "trace=fdatasync", "-e", fault, *command],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1
    assert "DiskFailed" in done.stderr.splitlines()[-1]


def test_a_full_disk_refuses_commits_and_still_reads_and_recovers(
    strace: str, program: Program, environment: dict[str, str], tmp_path: Path
) -> None:
    log = tmp_path / "opened.log"
    traced(strace, "-e trace=pwrite64", log, program(COMMITS, tmp_path / "empty", 0), environment)
    full = log.read_text().count("pwrite64(") + 10
    command = program(COMMITS, tmp_path / "store.sqlite", 60)
    calls = f"-e trace=pwrite64 -e inject=pwrite64:error=ENOSPC:when={full}..{full + 40}"
    output = json.loads(traced(strace, calls, tmp_path / "strace.log", command, environment))

    outcomes = output["outcomes"]
    assert set(outcomes) == {"ok", "DSS3001"}
    first = outcomes.index("DSS3001")
    last = len(outcomes) - outcomes[::-1].index("DSS3001")
    assert first > 0
    assert last < 60
    assert outcomes[first:last] == ["DSS3001"] * (last - first)
    assert output["reads"] == ["ok"] * 60
    assert output["told"] == []
