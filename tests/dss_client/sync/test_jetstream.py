"""The JetStream facade from threads, over a real daemon."""

from collections.abc import Iterator

import pytest

import dss_client.sync
from dss_core.errors import ConsumerIsBound, JetStreamMisuse
from support.served_daemon import served


@pytest.fixture(scope="module")
def client() -> Iterator["dss_client.sync.Client"]:
    """Of a daemon for the module."""
    with served() as (endpoint, _), dss_client.sync.connect("threads", endpoint=endpoint) as made:
        yield made


def test_a_thread_publishes_iterates_pulls_and_settles(client: "dss_client.sync.Client") -> None:
    js = client.jetstream()
    js.add_stream("ORDERS", ["orders.>"])
    for number in range(4):
        ack = js.publish("orders.eu", b"%d" % number, headers={"a": "b"})
        assert (ack.stream, ack.seq) == ("ORDERS", number + 1)
    assert js.find_stream_name_by_subject("orders.>") == "ORDERS"
    assert js.stream_info("ORDERS").state.messages == 4

    sub = js.subscribe("orders.>", durable="d")
    with pytest.raises(ConsumerIsBound):
        js.subscribe("orders.>", durable="d")
    first = sub.next_msg(5)
    assert (first.subject, first.data, first.headers) == ("orders.eu", b"0", {"a": "b"})
    assert (first.metadata.sequence.stream, first.reply[:8]) == (1, "$JS.ACK.")
    first.in_progress()
    assert not first.is_acked
    assert first.ack_sync(5).is_acked
    seen = []
    for message in sub.messages:
        seen.append((message.data, message.metadata.num_delivered))
        if message.data == b"3" and message.metadata.num_delivered == 1:
            message.nak()
        elif message.data == b"2":
            message.term()
        else:
            message.ack()
        if len(seen) == 4:
            break
    assert seen == [(b"1", 1), (b"2", 1), (b"3", 1), (b"3", 2)]
    assert sub.consumer_info().push_bound
    sub.unsubscribe()

    pull = js.pull_subscribe("orders.>", "p")
    assert [each.data for each in pull.fetch(2, timeout=5)] == [b"0", b"1"]
    assert js.consumer_info("ORDERS", "p").config.durable_name == "p"
    assert pull.consumer_info().name == "p"
    pull.unsubscribe()
    ordered = js.subscribe("orders.>", ordered_consumer=True)
    assert ordered.next_msg(5).data == b"0"
    ordered.unsubscribe()
    js.add_consumer("ORDERS", durable_name="e", filter_subject="orders.>")
    assert js.delete_consumer("ORDERS", "e")
    assert client.groups.list() == ()


def test_a_thread_has_no_callback(client: "dss_client.sync.Client") -> None:
    with pytest.raises(JetStreamMisuse):
        client.jetstream().subscribe("orders.>", cb=print)
