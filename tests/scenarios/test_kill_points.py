"""kill -9 at every system call that a daemon makes on its files, one call a run.

A trial runs once to count the calls, and once for each point with the daemon killed as it enters
that call: of the log, of the store, at the start, in the midst and while it stops. An offline
check finds no damage in what is left; then a daemon starts on it, and one verdict judges.
`make proof` tries all 800 points, which takes a quarter of an hour; `make test` tries two of
them, of different kinds of call and file.
"""

import pytest

from support.struck_trials import RECORDS
from support.syscall_faults import assert_all_sound, chosen

pytestmark = [
    pytest.mark.needs_strace,
    pytest.mark.slow("a daemon for each point"),
    pytest.mark.usefixtures("impatient"),
]

SAMPLE = 2


async def test_a_kill_at_any_call_loses_nothing_that_was_acknowledged_and_invents_nothing() -> None:
    await assert_all_sound(chosen(await RECORDS.points(), SAMPLE), RECORDS.killed_at)
