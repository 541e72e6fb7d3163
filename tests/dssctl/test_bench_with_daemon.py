"""``dssctl bench`` against a daemon process."""

import asyncio
import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dssctl.bench import running
from support.dssctl_call import Completed, Daemon, environment, run_forked
from support.started_program import ProgramProcess


def items(done: Completed) -> list[dict[str, Any]]:
    assert done.returncode == 0, done.stderr.decode()
    return list(json.loads(done.stdout)["items"])


def left_behind(daemon: Daemon) -> list[str]:
    groups = items(daemon.dssctl("groups", "ls", "-o", "json"))
    topics = items(daemon.dssctl("topics", "ls", "-o", "json"))
    return [each["name"] for each in (*groups, *topics)]


def test_all_that_is_published_comes_back_and_nothing_is_left_behind(daemon: Daemon) -> None:
    done = daemon.dssctl(
        *("bench", "-n", "3000", "--size", "64B", "--single", "20", "--partitions", "2"),
        *("-o", "json"),
    )
    parts = {each["part"]: each for each in items(done)}
    assert parts["publish"]["records"] == parts["deliver"]["records"] == 3_000
    assert parts["ack"]["records"] == parts["end-to-end"]["records"] == 20
    for part in ("publish", "ack", "end-to-end"):
        assert 0 < parts[part]["p50_ms"] <= parts[part]["p99_ms"] <= parts[part]["max_ms"]
    assert left_behind(daemon) == []


def test_an_interrupted_bench_leaves_nothing_behind(daemon: Daemon) -> None:
    bench = ProgramProcess(
        [
            *("-m", "dssctl", "--endpoint", daemon.endpoint, "bench"),
            *("-n", "50000000", "--size", "1B", "--frame", "50", "--for", "60s"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    while not left_behind(daemon):
        assert bench.poll() is None
    bench.send_signal(signal.SIGINT)
    out, _ = bench.communicate(timeout=60)
    assert (bench.returncode, out) == (130, b"")
    assert left_behind(daemon) == []


def test_a_bench_ends_after_its_time(daemon: Daemon) -> None:
    done = daemon.dssctl(
        *("bench", "-n", "50000000", "--size", "1B", "--for", "100ms", "--single", "0")
    )
    assert done.returncode == 0, done.stderr.decode()
    assert b"100ms were over after" in done.stderr


def test_a_bench_whose_records_do_not_come_back_ends_and_leaves_nothing_behind(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(running, "_deliver", never)
    monkeypatch.setattr(running, "BENCH_DRAIN_S", 0.2)
    monkeypatch.setattr(running, "BENCH_LATENCY_S", 0.2)
    done = daemon.dssctl("bench", "-n", "10", "--for", "100ms")
    assert done.returncode == 4
    assert b"error DSS5004: The bench did not finish within 0.5 s" in done.stderr
    assert left_behind(daemon) == []


def test_what_would_fill_the_disk_is_refused(daemon: Daemon) -> None:
    huge = daemon.dssctl("bench", "-n", "1000000", "--size", "1M")
    assert huge.returncode == 2
    assert b"error DSS1010: " in huge.stderr


def test_a_context_that_is_protected_or_read_only_gets_no_bench(
    daemon: Daemon, tmp_path: Path
) -> None:
    config = tmp_path / "config.toml"
    endpoint = f'endpoint = "{daemon.endpoint}"'
    config.write_text(
        f"[contexts.prod]\n{endpoint}\nprotected = true\n[contexts.look]\n{endpoint}\n"
        "read_only = true\n"
    )
    for context, code in (("prod", b"DSS1173"), ("look", b"DSS1121")):
        variables = environment(DSSCTL_CONFIG=str(config))
        done = run_forked(variables, "-c", context, "bench", "-n", "1")
        assert done.returncode == 7
        assert code in done.stderr
    assert left_behind(daemon) == []
