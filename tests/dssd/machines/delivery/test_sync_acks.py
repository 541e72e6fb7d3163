"""When a synchronous ack is answered."""

from dss_core.progress import Progress
from dssd.machines.delivery.sync_acks import DurableAcks


def test_a_token_waits_until_all_that_it_acked_is_durable() -> None:
    acks = DurableAcks()
    acks.begin(1, Progress(0))
    assert acks.wait(1, 7, ((2, 4), (6, 7))) == []
    assert acks.saved(1, Progress(0, ((2, 4),))) == []
    assert acks.saved(1, Progress(0, ((6, 7),))) == [7]
    assert acks.saved(1, Progress(9)) == []


def test_a_token_of_what_is_durable_already_is_answered_at_once() -> None:
    acks = DurableAcks()
    acks.begin(1, Progress(5))
    assert acks.wait(1, 7, ((2, 4),)) == [7]
    assert acks.wait(1, 8, ()) == [8]


def test_a_token_under_two_grants_is_answered_once() -> None:
    acks = DurableAcks()
    for grant in (1, 2):
        acks.begin(grant, Progress(0))
        acks.wait(grant, 7, ((0, 1),))
    assert acks.saved(1, Progress(1)) == []
    assert acks.saved(2, Progress(1)) == [7]


def test_a_token_of_a_grant_that_ended_is_never_answered() -> None:
    acks = DurableAcks()
    for grant in (1, 2):
        acks.begin(grant, Progress(0))
        acks.wait(grant, 7, ((0, 1),))
    assert acks.end(1)
    assert acks.saved(1, Progress(1)) == []
    assert acks.saved(2, Progress(1)) == []
    assert not acks.end(1)
