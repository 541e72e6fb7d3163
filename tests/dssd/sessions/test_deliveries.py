from dss_core.frame import assemble, stamped
from dssd.machines.delivery.events import Deliver
from dssd.sessions.deliveries import Deliveries

AT_US = 1_000_000_000


def stored_frame() -> bytes:
    frame = assemble(
        1, records=8, partition=0, subjects=1, producer_id=bytes(16), sequence=1, parts=[b"body"]
    )
    head = stamped(frame, base_offset=10, append_time_us=AT_US, topic_epoch=1, storage_topic_id=1)
    return head + frame[len(head) :]


def test_records_that_are_masked_are_not_counted() -> None:
    deliveries = Deliveries()
    deliveries.note([Deliver(1, stored_frame(), ((11, 13),), False, 0, 10, 18)], AT_US + 20_000)
    assert (deliveries.messages, deliveries.records, deliveries.redelivered) == (1, 6, 0)
    assert deliveries.bytes == len(stored_frame())
    assert deliveries.ages.sum_s == 0.02


def test_what_comes_again_has_no_age() -> None:
    deliveries = Deliveries()
    deliveries.note([Deliver(1, stored_frame(), (), True, 2, 10, 18)], AT_US + 20_000)
    assert (deliveries.records, deliveries.redelivered) == (8, 8)
    assert dict(deliveries.ages.up_to())[None] == 0


def test_a_clock_that_was_set_back_makes_no_negative_age() -> None:
    deliveries = Deliveries()
    deliveries.note([Deliver(1, stored_frame(), (), False, 0, 10, 18)], AT_US - 1)
    assert deliveries.ages.sum_s == 0


def test_what_goes_in_one_message_is_counted_as_one_message() -> None:
    deliveries = Deliveries()
    both = [Deliver(grant, stored_frame(), (), False, 1, 10, 18) for grant in (1, 2)]
    deliveries.note(both, AT_US)
    assert (deliveries.messages, deliveries.records) == (1, 16)
