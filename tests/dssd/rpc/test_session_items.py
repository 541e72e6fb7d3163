"""Items of records on the wire, whichever way they are put there."""

import pytest

from dss_api.v1 import sessions_pb2, types_pb2
from dssd.machines.delivery.events import Deliver
from dssd.rpc.session_items import ITEM_JOINED_BYTES_MIN, encoded
from dssd.sessions.client_items import Bundle

SIZES = [0, 1, 127, 128, ITEM_JOINED_BYTES_MIN - 1, ITEM_JOINED_BYTES_MIN, 300_000, 1 << 21]


def delivery(size: int, *, ranges: int = 2, grant: int = 300) -> Deliver:
    mask = tuple((10 * each, 10 * each + 3) for each in range(ranges))
    return Deliver(grant, bytes([size % 251]) * size, mask, True, 7, 0, 1_000)


def message_of(item: Deliver) -> sessions_pb2.Deliver:
    return sessions_pb2.Deliver(
        grant=item.grant,
        frames=item.frames,
        mask=[types_pb2.Range(start=start, end=end) for start, end in item.mask],
        redelivered=item.redelivered,
        attempt=item.attempt,
    )


def read(item: Deliver | Bundle) -> sessions_pb2.SessionDown:
    written = encoded(item)
    if isinstance(written, bytes):
        return sessions_pb2.SessionDown.FromString(written)
    return written


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("ranges", [0, 1, 100])
def test_a_delivery_of_any_size_says_what_it_is(size: int, ranges: int) -> None:
    item = delivery(size, ranges=ranges)
    assert read(item) == sessions_pb2.SessionDown(deliver=message_of(item))


def test_a_bundle_says_its_deliveries_in_their_order() -> None:
    items = tuple(delivery(size, grant=1 << number) for number, size in enumerate(SIZES))
    for some in (items[:3], items):
        bundle = sessions_pb2.DeliveryBundle(deliveries=map(message_of, some))
        assert read(Bundle(some)) == sessions_pb2.SessionDown(bundle=bundle)


def test_many_bytes_of_records_are_put_together_once() -> None:
    assert isinstance(encoded(delivery(ITEM_JOINED_BYTES_MIN)), bytes)
    assert not isinstance(encoded(delivery(ITEM_JOINED_BYTES_MIN - 1)), bytes)
    halves = (delivery(ITEM_JOINED_BYTES_MIN // 2),) * 2
    assert isinstance(encoded(Bundle(halves)), bytes)
