"""Programs that a task starts."""

import os
import signal

import pytest

from dssd.schedules.tasks import programs


async def test_a_program_that_may_not_be_ended_holds_nobody_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It became another user's: a file of root with the set-user-id bit does that."""

    def refused(group: int, number: int) -> None:
        raise PermissionError

    monkeypatch.setattr(programs, "PROGRAM_END_S", 0.01)
    with monkeypatch.context() as patched:
        patched.setattr(os, "killpg", refused)
        async with programs.started(["sleep", "60"]) as program:
            process = program._process
    assert process.poll() is None
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
