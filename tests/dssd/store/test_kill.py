"""A process that commits is killed; what it acknowledged is still there."""

import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

from dssd.store.port import Put
from dssd.store.rows import LeaderRow
from dssd.store.sqlite import SqliteStore

KILLS = 5
ACKNOWLEDGED_BEFORE_KILL = 400


def run_and_kill(command: list[str], environment: dict[str, str]) -> list[tuple[int, ...]]:
    """Kill the process while it commits; returns what it printed: task, epoch, version, id."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True)
    assert process.stdout is not None
    told = [process.stdout.readline() for _ in range(ACKNOWLEDGED_BEFORE_KILL)]
    process.send_signal(signal.SIGKILL)
    told += process.stdout.readlines()
    process.stdout.close()
    assert process.wait() == -signal.SIGKILL
    return [tuple(map(int, line.split()[1:])) for line in told]


async def test_kill_9_loses_no_acknowledged_commit_and_reuses_no_number(
    program: Callable[..., list[str]], environment: dict[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "store.sqlite"
    version_max = id_max = 0
    for _ in range(KILLS):
        told = run_and_kill(program("commit_and_tell", path, 20, 1_000_000), environment)
        assert min(version for _, _, version, _ in told) > version_max
        assert min(id_ for *_, id_ in told if id_) > id_max
        version_max = max(version for _, _, version, _ in told)
        id_max = max(id_ for *_, id_ in told)
        store = await SqliteStore.open(path)
        for task in range(20):
            found = await store.read(LeaderRow, (task,))
            assert found is not None
            acknowledged = max(epoch for at, epoch, *_ in told if at == task)
            # One more may have been committed than was printed.
            assert found.row.leader_epoch in (acknowledged, acknowledged + 1)
            version_max = max(version_max, found.version)
        (version,) = await store.commit([Put(LeaderRow(99, b"", 1, 0))])
        assert version > version_max
        version_max = version
        assert await store.next_id() > id_max
        await store.close()
