"""What ``dssctl groups`` makes of answers, without a daemon."""

from collections.abc import Callable

import pytest

from dss_client.answers import ScanFound, StreamSums
from dss_client.group_values import Fates
from dssctl import group_questions
from support.dssctl_call import Completed


def test_sums_that_do_not_add_up_end_with_exit_code_1_and_say_which(
    dssctl: Callable[..., Completed], monkeypatch: pytest.MonkeyPatch
) -> None:
    fates = Fates(acked=7, filtered=2, lost=0, damaged=0, moved=0)
    right = StreamSums("orders/0/0", 0, 11, fates, 0, 2, 0, 0, "", None)
    wrong = StreamSums(
        "orders/0/1", 0, 11, fates, 0, 2, 0, 0, "7 counted, and 6 were found.", ScanFound(6, 3, 0)
    )
    monkeypatch.setattr(group_questions, "ask", lambda *_: (right, wrong))
    done = dssctl("groups", "verify", "billing", "--scan")
    assert done.returncode == 1
    lines = done.stdout.decode().splitlines()
    assert [line.split()[:3] for line in lines[1:]] == [
        ["orders/0/0", "yes", "11"],
        ["orders/0/1", "no", "11"],
    ]
    assert lines[2].rstrip().endswith("7 counted, and 6 were found.")
    monkeypatch.setattr(group_questions, "ask", lambda *_: (right,))
    assert dssctl("groups", "verify", "billing").returncode == 0
