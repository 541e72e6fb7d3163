from dss_core.progress import Ranges
from dssd.limits import OUTGOING_ITEMS_MAX
from dssd.machines.delivery.events import Deliver
from dssd.sessions.client_items import Bundle, Down, PongSent, Revoke
from dssd.sessions.delivery_budget import DeliveryBudget
from dssd.sessions.outgoing import (
    BUNDLE_DELIVERIES_MAX,
    DELIVERY_BYTES_USUAL,
    DELIVERY_WRITE_COPIES,
    Outgoing,
)


def delivery(
    grant: int, base: int, end: int, mask: Ranges = (), *, attempt: int = 1, size: int = 0
) -> Deliver:
    frames = b"%d-%d;" % (base, end) + b"." * size
    return Deliver(grant, frames, mask, attempt > 1, attempt, base, end)


def taken(*items: Down, takes_bundles: bool = False) -> list[Down]:
    """What comes out of a queue that waited until all items were in it."""
    outgoing = Outgoing(DeliveryBudget().account(), takes_bundles=takes_bundles)
    for item in items:
        assert outgoing.put(item)
    return list(iter(outgoing.take, None))


def test_deliveries_of_a_stream_that_wait_go_together() -> None:
    joined = taken(
        delivery(1, 0, 10, ((0, 2),)), delivery(2, 7, 9), delivery(1, 10, 12, ((11, 12),))
    )
    assert joined == [
        Deliver(1, b"0-10;10-12;", ((0, 2), (11, 12)), False, 1, 0, 12),
        delivery(2, 7, 9),
    ]


def test_a_delivery_that_does_not_go_on_where_the_last_ended_goes_alone() -> None:
    apart = [delivery(1, 0, 10), delivery(1, 5, 10), delivery(1, 20, 30)]
    assert taken(*apart) == apart


def test_deliveries_that_tell_different_things_go_apart() -> None:
    apart = [delivery(1, 0, 10), delivery(1, 10, 20, attempt=2), delivery(1, 20, 30)]
    assert taken(*apart) == apart


def test_what_goes_together_is_bounded() -> None:
    half = DELIVERY_BYTES_USUAL // 2 - 100
    apart = [delivery(1, n, n + 1, size=half) for n in range(3)]
    joined = taken(*apart)
    assert [len(each.frames) > half * 1.5 for each in joined if isinstance(each, Deliver)] == [
        True,
        False,
    ]


def test_deliveries_of_several_streams_go_in_one_item_to_who_takes_that() -> None:
    first, other, again = delivery(1, 0, 10), delivery(2, 7, 9), delivery(1, 0, 5, attempt=2)
    items: list[Down] = [first, other, again, Revoke(1, 5), delivery(2, 9, 12)]
    together = taken(*items, takes_bundles=True)
    assert together == [Bundle((first, other, again)), Revoke(1, 5), delivery(2, 9, 12)]


def test_a_bundle_is_bounded_in_bytes_and_in_deliveries() -> None:
    large = [delivery(grant, 0, 1, size=DELIVERY_BYTES_USUAL // 2) for grant in range(2)]
    assert taken(*large, takes_bundles=True) == large
    many = [delivery(grant, 0, 1) for grant in range(BUNDLE_DELIVERIES_MAX + 1)]
    assert taken(*many, takes_bundles=True) == [Bundle(tuple(many[:-1])), many[-1]]


def test_what_is_written_of_a_bundle_is_held_until_the_next_item_is_wanted() -> None:
    account = DeliveryBudget().account()
    outgoing = Outgoing(account, takes_bundles=True)
    size = 0
    for grant in (1, 2):
        item = delivery(grant, 0, 10)
        size += len(item.frames)
        outgoing.put(item)
    outgoing.take()
    assert account.held_bytes == size * DELIVERY_WRITE_COPIES
    outgoing.written()
    assert account.held_bytes == 0


def test_no_delivery_passes_an_item_of_another_kind() -> None:
    items: list[Down] = [delivery(1, 0, 10), Revoke(1, 5), delivery(1, 10, 20)]
    assert taken(*items) == items


def test_a_delivery_joins_none_that_was_taken() -> None:
    outgoing = Outgoing(DeliveryBudget().account())
    for base in range(3):
        outgoing.put(delivery(1, base, base + 1))
        assert outgoing.take() == delivery(1, base, base + 1)


def test_closing_drops_records_and_keeps_what_is_to_be_told() -> None:
    outgoing = Outgoing(DeliveryBudget().account())
    outgoing.put(delivery(1, 0, 10))
    outgoing.put(PongSent(1))
    outgoing.close()
    outgoing.put(delivery(1, 10, 20))
    assert outgoing.take() == PongSent(1)
    assert outgoing.take() is None


def test_items_left_unread_are_bounded_and_records_are_not_counted() -> None:
    outgoing = Outgoing(DeliveryBudget().account())
    assert all(outgoing.put(PongSent(n)) for n in range(OUTGOING_ITEMS_MAX))
    assert not outgoing.put(PongSent(0))
    assert outgoing.put(delivery(1, 0, 10))
    outgoing.take()
    assert outgoing.put(PongSent(0))
