"""Items of records on the wire, whichever way they are put there."""

import pytest

from dss_api.v1 import sessions_pb2, types_pb2
from dss_core.lane import grant_and_level
from dss_core.progress import Progress
from dssd.machines.delivery.events import (
    AskBack,
    Deliver,
    Nak,
    Settles,
    TakeBack,
    TakenBack,
)
from dssd.rpc.session_items import ITEM_JOINED_BYTES_MIN, encoded, items_from
from dssd.sessions.client_items import Bundle, Gone, Granted

SIZES = [0, 1, 127, 128, ITEM_JOINED_BYTES_MIN - 1, ITEM_JOINED_BYTES_MIN, 300_000, 1 << 21]


def delivery(size: int, *, ranges: int = 2, grant: int = 300) -> Deliver:
    mask = tuple((10 * each, 10 * each + 3) for each in range(ranges))
    return Deliver(grant, bytes([size % 251]) * size, mask, True, 7, 0, 1_000)


def message_of(item: Deliver) -> sessions_pb2.Deliver:
    grant, level = grant_and_level(item.grant)
    return sessions_pb2.Deliver(
        grant=grant,
        level=level,
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


def test_what_is_settled_of_a_level_names_its_grant_and_the_level() -> None:
    given = [(8, 0), (8, 1), (8, 1 << 31), (77, 1), ((1 << 64) - 4, 9), ((1 << 64) - 1, 9)]
    settles = [sessions_pb2.Settle(grant=grant, level=level) for grant, level in given]
    up = sessions_pb2.SessionUp(settle=sessions_pb2.SettleBatch(settles=settles))
    (item,) = items_from(up)
    assert isinstance(item, Settles)
    last = (1 << 64) - 1
    assert [settle.grant for settle in item.settles] == [8, 9, 11, 77, last, last]


def test_a_refusal_says_why_and_what_is_too_long_of_it_is_cut() -> None:
    long = sessions_pb2.Nak(start=0, end=1, error="é" * (1 << 19), error_type="E" * (1 << 20))
    reject = sessions_pb2.Nak(start=1, end=2, error="no", error_type="KeyError", reject=True)
    settle = sessions_pb2.Settle(grant=8, naks=[long, reject])
    up = sessions_pb2.SessionUp(settle=sessions_pb2.SettleBatch(settles=[settle]))
    (item,) = items_from(up)
    assert isinstance(item, Settles)
    first, second = item.settles[0].naks
    assert (first.error, first.error_type) == ("é" * 512, "E" * 1024)
    assert second == Nak(1, 2, None, "no", "KeyError", True)


def test_what_is_gone_of_a_retry_queue_names_its_level() -> None:
    gone = encoded(Gone(9, ((1, 2),)))
    assert isinstance(gone, sessions_pb2.SessionDown)
    assert (gone.gone.grant, gone.gone.level) == (8, 1)


def test_a_lane_is_granted_as_one() -> None:
    for queues, ordered in ((False, False), (True, False), (True, True)):
        said = encoded(Granted(8, 1, "orders/0/0", 2, Progress(0), 3, queues, ordered))
        assert isinstance(said, sessions_pb2.SessionDown)
        assert (said.granted.queues, said.granted.ordered) == (queues, ordered)


def test_what_is_taken_back_names_its_level_and_what_is_asked_for_a_number() -> None:
    told = encoded(TakeBack(9, ((1, 2), (4, 5))))
    asked = encoded(AskBack(8, ((1, 2),), 3))
    assert isinstance(told, sessions_pb2.SessionDown)
    assert isinstance(asked, sessions_pb2.SessionDown)
    ranges = [types_pb2.Range(start=1, end=2), types_pb2.Range(start=4, end=5)]
    assert told.take_back == sessions_pb2.TakeBack(grant=8, level=1, ranges=ranges)
    assert asked.take_back == sessions_pb2.TakeBack(grant=8, ranges=ranges[:1], number=3)


def test_an_answer_to_a_question_says_whether_the_record_is_out() -> None:
    answer = sessions_pb2.TakenBack(grant=8, number=3, out=True)
    assert [*items_from(sessions_pb2.SessionUp(taken_back=answer))] == [TakenBack(8, 3, True)]
