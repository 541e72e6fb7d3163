"""What is asked wrongly of a job on Spark: a code, a sentence, a hint, and no job.

All of it is found before a driver starts, so no JVM is. What only a driver can find, rows without
a key and functions that fail, is in ``tests/dss_spark``.
"""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import dss_client
from dss_client.changes import CreateJob
from dss_client.job_values import SourceRange
from dss_core.errors import SourceGone
from support.dssctl_call import Daemon
from support.prerequisites import need_spark

TOPIC, TARGET = "asked", "asked-copies"
REPLAY = ("replays", "create", "bad", "--from", TOPIC, "--to", TARGET, "--engine", "spark")
TRANSFORM = ("transforms", "create", "bad", "--from", TOPIC, "--to", TARGET, "--function")
BACKFILL = ("backfills", "create", "bad", "--to", TARGET, "--engine", "spark", "--key", "k")


@pytest.fixture(autouse=True)
def _topics(daemon: Daemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A topic with a record and one for copies; behind each test there is no job and no copy."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    for topic in (TOPIC, TARGET):
        daemon.dssctl("topics", "create", topic, "--partitions", "1", "--if-not-exists")
    daemon.dssctl("produce", TOPIC, stdin=b"one\n")
    yield
    assert daemon.dssctl("jobs", "describe", "bad").returncode == 5
    assert asyncio.run(copies(daemon.endpoint)) == 0
    assert not [path for path in tmp_path.rglob("state/**/*") if path.is_file()]


async def copies(endpoint: str) -> int:
    async with dss_client.connect(endpoint=endpoint) as client:
        return sum([1 async for _ in client.read(f"{TARGET}/#")])


def refused(daemon: Daemon, *arguments: str, code: str = "", said: str, exit_code: int) -> None:
    done = daemon.dssctl(*arguments, "--yes")
    told = " ".join(done.stderr.decode().split())
    assert done.returncode == exit_code, told
    assert code in told
    assert said in told
    if code:
        assert "hint:" in told


def in_files() -> None:
    Path("rows.csv").write_text("k,n\na,1\n")
    Path("other.csv").write_text("k,m\na,1\n")
    Path("broken.parquet").write_bytes(b"PAR1 and no more")
    Path("fix.py").write_text("def fix(records):\n    return records\n")
    Path("wrong.py").write_text("def fix(records:\n")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ((*BACKFILL, "rows.csv", "--time-column", "none"), "DSS7015", "it has no column none"),
        ((*BACKFILL, "broken.parquet"), "DSS7015", "broken.parquet cannot be backfilled"),
        ((*BACKFILL, "rows.csv", "other.csv"), "DSS7015", "other.csv cannot be backfilled"),
        ((*BACKFILL, "absent.csv"), "", "absent.csv"),
        ((*TRANSFORM, "fix.py"), "DSS7044", "it is written FILE.py:NAME"),
        ((*TRANSFORM, "absent.py:fix"), "DSS7044", "No such file"),
        ((*TRANSFORM, "wrong.py:fix"), "DSS7044", "is no Python"),
        ((*TRANSFORM, "fix.py:mend"), "DSS7044", "defines no function mend"),
        ((*REPLAY, "--conf", "driver.memory=1g"), "", "is no property of Spark"),
        ((*REPLAY[:-1], "flink"), "", "--engine is one of local, spark, auto"),
        ((*REPLAY[:-1], "local", "--master", "local[2]"), "", "are of --engine spark"),
    ],
)
def test_what_is_written_wrongly_makes_no_job(
    daemon: Daemon, arguments: tuple[str, ...], code: str, said: str
) -> None:
    in_files()
    refused(daemon, *arguments, "--no-drive", code=code, said=said, exit_code=2)


def test_a_target_that_is_the_source_makes_no_job(daemon: Daemon) -> None:
    in_files()
    for command in (REPLAY, (*TRANSFORM, "fix.py:fix")):
        at = command.index(TARGET)
        looped = (*command[:at], TOPIC, *command[at + 1 :], "--no-drive")
        refused(daemon, *looped, code="DSS7009", said="which it reads", exit_code=6)


async def test_a_range_that_is_not_kept_makes_no_job(daemon: Daemon) -> None:
    async with dss_client.connect(endpoint=daemon.endpoint) as client:
        [storage] = (await client.topics.describe(TOPIC)).storage_topics
        beyond = SourceRange(f"{TOPIC}/0/0", storage.storage_topic_id, 0, 1_000_000, 1_000_001)
        change = CreateJob(
            "bad", "replay", source=TOPIC, target=TARGET, ranges=(beyond,), engine="spark"
        )
        with pytest.raises(SourceGone, match="is not kept"):
            await client.operations.plan(change)


def test_without_pyspark_or_java_the_error_names_what_to_install(
    daemon: Daemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("importlib.util.find_spec", lambda _name: None)
        refused(daemon, *REPLAY, code="DSS7040", said="dss[spark]", exit_code=1)
    need_spark()
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    refused(daemon, *REPLAY, code="DSS7040", said="openjdk-17", exit_code=1)


def test_a_master_that_takes_no_connection_makes_no_job(daemon: Daemon) -> None:
    need_spark()
    with closed_port() as port:
        master = f"spark://127.0.0.1:{port}"
        said = "takes no connection"
        refused(daemon, *REPLAY, "--master", master, code="DSS7041", said=said, exit_code=3)
    said = "not written as Spark writes masters"
    refused(daemon, *REPLAY, "--master", "lokal[2]", code="DSS7041", said=said, exit_code=3)


@contextmanager
def closed_port() -> Iterator[int]:
    """A port that is taken, and listens to nobody."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        yield unused.getsockname()[1]
