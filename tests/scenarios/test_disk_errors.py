"""A disk that fails one sync, at any sync of a daemon's life: of the log, the store, a directory.

A trial runs once to count the syncs, and once for each point with that sync failing. What a failed
sync left is unknown to everybody, so the daemon ends at once, with exit code 74, and answers
nothing any more. Then the disk forgets what the segment file had not synced, and the next daemon
must have all that was acknowledged. `make proof` tries all syncs, `make test` a sample.
"""

import pytest

from support.struck_trials import RECORDS
from support.syscall_faults import assert_all_sound, chosen

pytestmark = [
    pytest.mark.needs_strace,
    pytest.mark.slow("a daemon for each point"),
    pytest.mark.usefixtures("impatient"),
]

SAMPLE = 1


async def test_any_sync_that_fails_ends_the_daemon_and_nothing_acknowledged_is_lost() -> None:
    await assert_all_sound(chosen(await RECORDS.syncs(), SAMPLE), RECORDS.failed_at)
