"""One grant in the window: what refusals, waits and delays make of its records."""

from dssd.machines.attempts import Due
from dssd.machines.delivery.events import Nak, Settle
from support.played_window import ACK_WAIT_MS, Client, Stream


def test_the_delay_of_a_late_nak_counts_while_the_record_rests() -> None:
    client = Client()
    client.install(1, Stream([4]))
    client.feed(Settle(1, frontier=4))
    client.take()
    client.tick(ACK_WAIT_MS)
    late = (Nak(0, 2, 5_000), Nak(1, 3, 500), Nak(3, 4))
    client.feed(Settle(1, naks=late, frontier=4), Settle(1, naks=(Nak(0, 1, 0),), frontier=4))
    client.tick(999)
    assert client.take() == [(((2, 3),), True, 2)], "the first delay that a user chose"
    assert client.reports[1].fate.rests == ((0, 2, Due(ACK_WAIT_MS + 5_000, 5_000)),)
    client.tick(1)
    assert client.take() == [(((3, 4),), True, 2)]
    client.tick(3_999)
    assert client.take() == []
    client.tick(1)
    assert client.take() == [(((0, 2),), True, 2)]
    assert client.reports[1].fate.failures == ((0, 4, 1),)
