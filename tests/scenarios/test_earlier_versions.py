"""Directories and clients of earlier versions under this one, and this one's client under theirs.

For each format of the store the last version of it, from the history of this repository: its
daemon makes a directory and is killed; then this version's daemon runs on it, and clients of both
produce and take in turns. Then the old daemon is to refuse what the new one has written.
"""

from pathlib import Path

import pytest

from dss_core.errors import ExitCode
from dssd.data_directory import STORE_NAME
from support.daemon_process import DaemonEnded, short_directory
from support.earlier_versions import COMMITS, THIS, Commit, Version
from support.proof_share import only_in_proof
from support.syscall_faults import damage_in, data_in, serving

pytestmark = [only_in_proof, pytest.mark.slow("groups that start anew behind their leases")]

BEFORE, TAKEN, BEHIND = 40, 15, 20
ALL = BEFORE + 2 * BEHIND


@pytest.fixture(params=COMMITS, ids=str)
def commit(request: pytest.FixtureRequest) -> Commit:
    """One of each format."""
    found: Commit = request.param
    return found


async def test_this_version_goes_on_with_the_directory_and_the_clients_of_an_earlier_one(
    commit: Commit,
) -> None:
    with short_directory() as home:
        earlier = Version.unpacked(commit, home / "earlier")
        data = data_in(home)
        async with earlier.running(*serving(home, "old")) as daemon:
            stored = await earlier.call(daemon.endpoint, "send", 0, BEFORE)
            acked = await earlier.call(daemon.endpoint, "take", TAKEN)
        async with THIS.running(*serving(home, "new")) as daemon:
            assert await THIS.call(daemon.endpoint, "read") == stored
            stored |= await earlier.call(daemon.endpoint, "send", BEFORE, BEHIND)
            stored |= await THIS.call(daemon.endpoint, "send", BEFORE + BEHIND, BEHIND)
            for reader in (earlier, THIS):
                assert await reader.call(daemon.endpoint, "read") == stored
            taken = await earlier.call(daemon.endpoint, "take", TAKEN)
            rest = await THIS.call(daemon.endpoint, "take", ALL - 2 * TAKEN)
            assert acked | taken | rest == stored
            assert await daemon.stop() == 0
            assert "Traceback" not in daemon.said
        assert not damage_in(data)
        assert (data / f"{STORE_NAME}.format-{commit.store_format}").exists()
        await refuses(earlier, home)


async def refuses(earlier: Version, home: Path) -> None:
    """The older daemon leaves alone what it does not know."""
    before = files_of(data_in(home))
    with pytest.raises(DaemonEnded) as ended:
        async with earlier.running(*serving(home, "old again")):
            pass
    assert "written by a newer version" in ended.value.said
    assert "Traceback" not in ended.value.said
    assert ended.value.exit_code == ExitCode.CONFIG
    assert files_of(data_in(home)) == before


def files_of(data: Path) -> dict[str, bytes]:
    """What lies there, but for what says who runs or ran on it."""
    return {
        str(path.relative_to(data)): path.read_bytes()
        for path in data.rglob("*")
        if path.is_file() and path.name not in ("LOCK", "LIFE")
    }


async def test_a_client_of_this_version_works_with_an_earlier_daemon_or_says_why_not(
    commit: Commit,
) -> None:
    with short_directory() as home:
        earlier = Version.unpacked(commit, home / "earlier")
        async with earlier.running(*serving(home, "old")) as daemon:
            stored = await THIS.call(daemon.endpoint, "send", 0, BEFORE)
            assert await THIS.call(daemon.endpoint, "read") == stored
            taken = await THIS.call(daemon.endpoint, "take", BEFORE)
            assert taken == stored
            assert await daemon.stop() == 0
            assert "Traceback" not in daemon.said
