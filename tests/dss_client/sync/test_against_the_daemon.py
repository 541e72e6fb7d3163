"""The client without asyncio against a real daemon."""

import threading
from collections import Counter, defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain, islice
from time import monotonic
from typing import cast

import pytest

import dss_client
import dss_client.sync
from dss_client._grant import HeldGrant
from dss_client._handout import Handout
from dss_client.changes import PauseGroup
from dss_client.sync import Client, DeliveredRecord
from dss_client.testing import until
from dss_core.errors import (
    BufferFull,
    ClientClosed,
    IllegalArgument,
    SubjectOutsideTopic,
    TopicExists,
    TopicNotFound,
    WouldWaitForItself,
)


def until_in_threads(condition: Callable[[], object]) -> None:
    """Wait for it, in this thread."""
    ends_s = monotonic() + 30
    while not condition():
        assert monotonic() < ends_s


def published(client: Client, topic: str, count: int) -> list[bytes]:
    payloads = [b"%d" % number for number in range(count)]
    with client.producer(topic) as producer:
        for payload in payloads:
            producer.enqueue(payload, key=b"%d" % (len(payload) % 7))
    return payloads


def test_topics_and_groups_are_administered(client: Client, topic: str) -> None:
    with pytest.raises(TopicExists):
        client.topics.create(topic, partitions=2)
    client.groups.create(f"$share/g/{topic}/#", start="earliest")
    assert client.groups.describe(f"g@{topic}/#").group.state == "idle"
    assert client.daemon.status().state == "serving"
    client.operations.apply(PauseGroup(f"g@{topic}/#"))
    assert next(iter(client.operations.list(subject=f"g@{topic}/#", latest=1))).kind


def test_a_record_is_stored_when_its_delivery_says_so(client: Client, topic: str) -> None:
    with client.producer(topic) as producer:
        ack = producer.send(b"a", key=b"k")
        deliveries = [producer.enqueue(b"b", key=b"k"), producer.send_nowait(b"c", key=b"k")]
        assert [each.wait().offset for each in deliveries] == [ack.offset + 1, ack.offset + 2]
        assert all(each.done() for each in deliveries)
        acks = producer.send_columns([b"d", b"e"], keys=[b"k", b"k"])
        assert [(each.offset, each.records) for each in acks] == [(ack.offset + 3, 2)]
    assert [record.payload for record in client.read(f"{topic}/#")] == [
        b"a",
        b"b",
        b"c",
        b"d",
        b"e",
    ]


@pytest.mark.parametrize("payload", ["text", None])
def test_what_is_wrong_with_a_record_is_said_where_it_is_handed_over(
    client: Client, topic: str, payload: object
) -> None:
    with client.producer(topic) as producer:
        with pytest.raises(SubjectOutsideTopic):
            producer.enqueue(b"x", subject="elsewhere/1")
        with pytest.raises(IllegalArgument):
            producer.send_nowait(cast("bytes", payload))
    with pytest.raises(TopicNotFound), client.producer("nowhere"):
        pass


def test_what_a_producer_holds_is_bounded(client: Client, topic: str) -> None:
    with client.producer(topic, buffer_bytes=64 << 10) as producer:
        with pytest.raises(BufferFull):
            any(producer.send_nowait(b"x" * 1_000) is None for _ in range(1_000))
        for _ in range(200):
            producer.enqueue(b"y" * 1_000)
        producer.flush()
    assert sum(1 for record in client.read(f"{topic}/#") if record.payload[:1] == b"y") == 200


def test_records_come_one_by_one_and_are_acknowledged(client: Client, topic: str) -> None:
    payloads = published(client, topic, 3_000)
    with client.subscribe(f"$share/g/{topic}/#", start="earliest") as subscription:
        taken = []
        for record in subscription:
            record.ack()
            taken.append(record.payload)
            if len(taken) == len(payloads):
                break
        subscription.drain()
        assert list(subscription) == []
    assert sorted(taken) == sorted(payloads)
    (group,) = client.groups.list(filter=f"filter={topic}/#")
    assert group.lag == 0


def test_an_iteration_that_is_left_goes_on_where_it_was(client: Client, topic: str) -> None:
    published(client, topic, 500)
    with client.subscribe(f"$share/g/{topic}/#", start="earliest") as subscription:
        seen: Counter[tuple[str, int]] = Counter()
        while sum(seen.values()) < 500:
            for record in islice(subscription, 70):
                seen[record.stream, record.offset] += 1
                assert not record.redelivered
                if sum(seen.values()) == 500:
                    break
        assert set(seen.values()) == {1}


def test_records_batches_and_fetches_may_take_turns(client: Client, topic: str) -> None:
    payloads = published(client, topic, 3_000)
    with client.subscribe(f"$share/g/{topic}/#", start="earliest") as subscription:
        taken: list[bytes] = []
        batches = subscription.batches()
        while len(taken) < len(payloads):
            one_by_one = [*islice(subscription, 1), *subscription.fetch(3, timeout=0)]
            for record in one_by_one:
                record.ack()
            taken += [record.payload for record in one_by_one]
            if len(taken) % 800 < 4 and len(taken) < len(payloads):
                batch = next(batches)
                batch.ack()
                taken += batch.payloads
        subscription.drain()
    assert sorted(taken) == sorted(payloads)
    (group,) = client.groups.list(filter=f"filter={topic}/#")
    assert group.lag == 0


def test_the_end_of_a_thread_that_takes_records_leaves_the_rest_to_others(
    client: Client, topic: str
) -> None:
    published(client, topic, 600)
    with client.subscribe(f"$share/g/{topic}/#", start="earliest") as subscription:
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(lambda: [*islice(subscription, 250)]).result()
        rest = [*islice(subscription, 350)]
    places = {(record.stream, record.offset) for record in chain(first, rest)}
    assert len(places) == 600
    assert not any(record.redelivered for record in rest)


def test_a_record_knows_whether_it_is_settled_and_a_refused_one_comes_again(
    client: Client, topic: str
) -> None:
    published(client, topic, 1)
    with client.subscribe(f"$share/g/{topic}/#", start="earliest") as subscription:
        records = iter(subscription)
        first = next(records)
        assert not first.acked
        first.in_progress()
        first.nak(delay=0)
        assert first.refused
        again = next(records)
        assert (again.offset, again.redelivered, again.attempt) == (first.offset, True, 2)
        again.ack(sync=True)
        assert again.acked


def test_a_copy_whose_ack_became_durable_while_it_waited_is_not_handed_out(
    client: Client, topic: str
) -> None:
    with client.producer(topic) as producer:
        producer.send_columns([b"x"] * 5, keys=[b"k"] * 5)
    with client.subscribe(f"$share/g/{topic}/#", start="earliest") as subscription:
        pieces = subscription._pieces
        first = subscription.fetch(5)
        for record in first:
            record.nak(delay=0)
        pieces.portal.run(until(lambda: pieces._count(5) == 5))
        for at in (0, 1, 3):
            first[at].ack(sync=True)
        again = list(islice(subscription, 2))
        assert [record.offset for record in again] == [2, 4]
        for record in again:
            record.ack(sync=True)


def test_a_copy_that_crossed_the_report_of_an_ack_is_not_handed_out(
    client: Client, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    came: list[tuple[HeldGrant, bytes]] = []
    with client.subscribe(f"$share/g/{topic}/#", start="earliest") as subscription:
        pieces = subscription._pieces
        deliver = pieces.deliver

        def look(handout: Handout) -> None:
            came.append((handout.grant, handout._frames))
            deliver(handout)

        monkeypatch.setattr(pieces, "deliver", look)
        with client.producer(topic) as producer:
            producer.send_columns([b"x"] * 5, keys=[b"k"] * 5)
        first = subscription.fetch(5)
        for at in (0, 1, 3):
            first[at].ack()
        [(grant, frames)] = came
        reported = ((0, 2), (3, 4))
        pieces.portal.run(until(lambda: grant.acked_before(((0, 5),)) == reported))
        # As a daemon sends them that has not heard of it.
        copies = Handout(grant, frames, (), redelivered=True, attempt=2)
        pieces.portal.call(partial(deliver, copies))
        assert [record.offset for record in islice(subscription, 2)] == [2, 4]
        assert subscription.fetch(1, timeout=0.01) == []


def test_batches_and_fetches_hand_out_the_same_records(client: Client, topic: str) -> None:
    payloads = published(client, topic, 2_000)
    with client.subscribe(f"$share/g/{topic}/#", start="earliest") as subscription:
        taken = []
        for record in subscription.fetch(10, timeout=60):
            record.ack()
            taken.append(record.payload)
        for batch in subscription.batches():
            taken += batch.payloads
            assert [record.offset for record in batch] == list(batch.offsets)
            batch.ack(sync=True)
            if len(taken) == len(payloads):
                break
        assert subscription.fetch(1, timeout=0) == []
    assert sorted(taken) == sorted(payloads)


def test_handlers_run_in_threads_and_keep_the_order_of_a_key(client: Client, topic: str) -> None:
    published(client, topic, 400)
    handled: dict[bytes | None, list[int]] = defaultdict(list)
    threads = set()
    failed: set[int] = set()
    with client.subscribe(f"$share/g/{topic}/#", start="earliest") as subscription:

        def handle(record: DeliveredRecord) -> None:
            threads.add(threading.current_thread().name)
            number = int(record.payload)
            if number % 100 == 50 and number not in failed:
                failed.add(number)
                record.nak(delay=0)
                return
            handled[record.key].append(number)
            if sum(map(len, handled.values())) == 400:
                subscription.drain()

        subscription.run(handle, concurrency=4)
    assert all(numbers == sorted(numbers) for numbers in handled.values())
    assert len(failed) == 4
    assert threads
    assert all(name.startswith("dss handler") for name in threads)


def test_a_record_that_fails_comes_again_with_its_error_until_it_is_dead(
    client: Client, topic: str
) -> None:
    published(client, topic, 40)
    client.groups.create(f"$share/g/{topic}/#", start="earliest", max_deliver=3, backoff=[0.01])
    seen: dict[int, list[tuple[object, ...]]] = defaultdict(list)
    places: dict[int, set[tuple[str, int]]] = defaultdict(set)
    with client.subscribe(f"$share/g/{topic}/#") as subscription:

        def handle(record: DeliveredRecord) -> None:
            number = int(record.payload)
            told = record.last_error, record.last_error_type
            seen[number].append((record.level, record.attempt, record.redelivered, *told))
            places[number].add((record.stream, record.offset))
            if sum(map(len, seen.values())) == 40 + 2 + 1:
                threading.Thread(target=subscription.drain).start()
            if number == 7:
                raise ValueError(f"no {record.attempt}")
            if number == 8:
                raise dss_client.Reject("never")
            if number == 9 and not record.level:
                record.nak(error="later")

        subscription.run(handle, concurrency=4)
    assert seen[7] == [
        (0, 1, False, None, None),
        (1, 2, True, "no 1", "ValueError"),
        (1, 3, True, "no 2", "ValueError"),
    ]
    assert seen[8] == [(0, 1, False, None, None)]
    assert seen[9] == [(0, 1, False, None, None), (1, 2, True, "later", None)]
    assert all(len(each) == 1 for each in places.values())
    deadline = monotonic() + 5
    while (stands := client.groups.describe(f"g@{topic}/#").group).dead != 2:
        assert monotonic() < deadline
    assert stands.lag == 0


def test_a_batch_that_fails_comes_again_as_it_was(client: Client, topic: str) -> None:
    published(client, topic, 40)
    client.groups.create(f"$share/g/{topic}/#", start="earliest", max_deliver=2, backoff=[0.01])
    first: dict[str, list[tuple[int, bytes]]] = defaultdict(list)
    again: dict[str, list[tuple[int, bytes]]] = defaultdict(list)
    with client.subscribe(f"$share/g/{topic}/#") as subscription:
        for batch in subscription.batches():
            rows = zip(batch.offsets, batch.payloads, strict=True)
            (again if batch.level else first)[batch.stream] += rows
            if batch.level:
                assert batch.attempt == 2
                batch.ack(sync=True)
            else:
                batch.nak(error="all of it")
            if sum(map(len, again.values())) == 40:
                break
    assert {each: sorted(rows) for each, rows in again.items()} == first
    assert client.groups.describe(f"g@{topic}/#").group.lag == 0


async def _never_awaited(record: DeliveredRecord) -> None:
    raise AssertionError(record)


def _without_a_record() -> None:
    raise AssertionError


@pytest.mark.parametrize("handler", [_never_awaited, _without_a_record])
def test_a_handler_that_cannot_be_one_is_an_error_and_acknowledges_nothing(
    client: Client, topic: str, handler: object
) -> None:
    published(client, topic, 1)
    filter_ = f"$share/g/{topic}/#"
    with client.subscribe(filter_, start="earliest") as subscription:
        with pytest.raises(IllegalArgument, match="plain function of one record"):
            subscription.run(cast("Callable[[DeliveredRecord], None]", handler))
        [record] = subscription.fetch(1, timeout=30)
        record.ack(sync=True)


class Ends(BaseException):
    """Raised by the program; it is no failure, as `SystemExit` is none."""


ENDS = pytest.mark.parametrize(
    "end", [SystemExit(3), KeyboardInterrupt(), Ends()], ids=["exit", "interrupt", "other"]
)


@ENDS
def test_what_ends_the_program_is_raised_where_it_runs_and_the_client_stays_usable(
    client: Client, topic: str, end: BaseException
) -> None:
    published(client, topic, 8)
    handled: list[tuple[bytes | None, bytes]] = []

    def handle(record: DeliveredRecord) -> None:
        handled.append((record.key, record.payload))
        if record.payload == b"3":
            raise end

    with client.subscribe(f"$share/g/{topic}/#", start="earliest") as subscription:
        with pytest.raises(type(end)) as raised:
            subscription.run(handle, concurrency=4)
        again = subscription.fetch(1, timeout=30)
    assert raised.value is end
    assert handled[-1][1] == b"3"  # all have one key: what is behind it was not handled
    assert [(each.payload, each.redelivered) for each in again] == [(b"3", True)]


def test_a_handler_that_raises_stop_iteration_fails_and_its_slot_goes_on(
    client: Client, topic: str
) -> None:
    published(client, topic, 2)
    handled: list[tuple[bytes, bool]] = []

    def handle(record: DeliveredRecord) -> None:
        handled.append((record.payload, record.redelivered))
        if len(handled) == 1:
            raise StopIteration
        if record.payload == b"1":
            subscription.drain()

    with client.subscribe(f"$share/g/{topic}/#", start="earliest") as subscription:
        subscription.run(handle, concurrency=1)
    assert handled == [(b"0", False), (b"0", True), (b"1", False)]


@ENDS
def test_what_a_callback_raises_comes_to_whoever_takes_records(
    client: Client, topic: str, end: BaseException
) -> None:
    granted: list[object] = []

    def ends(notice: object) -> None:
        granted.append(notice)
        if len(granted) == 1:
            raise end

    published(client, topic, 1)
    with client.subscribe(f"$share/g/{topic}/#", start="earliest", on_grant=ends) as subscription:
        with pytest.raises(type(end)):
            next(iter(subscription))
        [record] = subscription.fetch(1, timeout=30)
        record.ack(sync=True)


def _iterate(client: Client, topic: str) -> None:
    for record in client.subscribe(f"$share/g/{topic}/#", start="earliest").__enter__():
        record.ack()


def _fetch(client: Client, topic: str) -> None:
    subscription = client.subscribe(f"$share/g/{topic}/#", start="earliest").__enter__()
    while True:
        subscription.fetch(10)


def _run(client: Client, topic: str) -> None:
    subscription = client.subscribe(f"$share/g/{topic}/#", start="earliest").__enter__()
    subscription.run(lambda _: None)


def _read(client: Client, topic: str) -> None:
    for _ in client.read(f"{topic}/#", follow=True):
        pass


def _watch(client: Client, topic: str) -> None:
    for _ in client.watch("groups"):
        pass


@pytest.mark.parametrize("work", [_iterate, _fetch, _run, _read, _watch])
def test_whoever_still_works_with_a_client_that_is_closed_is_told(
    endpoint: str, topic: str, work: Callable[[Client, str], None]
) -> None:
    client = dss_client.sync.connect(endpoint=endpoint)
    with ThreadPoolExecutor(1) as threads:
        working = threads.submit(work, client, topic)
        if work not in (_read, _watch):
            until_in_threads(lambda: client.groups.list(filter=f"filter={topic}/#,members=1"))
        else:
            client.daemon.status()
        client.close()
        with pytest.raises(ClientClosed):
            working.result(30)
    for call in (client.daemon.status, lambda: _iterate(client, topic)):
        with pytest.raises(ClientClosed):
            call()


def test_several_threads_share_a_subscription_and_a_producer(client: Client, topic: str) -> None:
    count, threads = 4_000, 4
    with client.producer(topic) as producer, ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(lambda number: producer.enqueue(b"%d" % number), range(count)):
            pass
    lock, left = threading.Lock(), [count]
    with client.subscribe(f"$share/g/{topic}/#", start="earliest") as subscription:

        def take() -> list[bytes]:
            mine = []
            for record in subscription:
                record.ack()
                mine.append(record.payload)
                with lock:
                    left[0] -= 1
                    if not left[0]:
                        subscription.drain()
            return mine

        with ThreadPoolExecutor(threads) as pool:
            taken = [each.result() for each in [pool.submit(take) for _ in range(threads)]]
    assert sorted(chain(*taken)) == sorted(b"%d" % number for number in range(count))


def test_a_pause_stops_the_hand_out_at_once(client: Client, topic: str) -> None:
    published(client, topic, 1_000)
    with client.subscribe(f"$share/g/{topic}/#", start="earliest") as subscription:
        records = iter(subscription)
        first = next(records)
        client.operations.apply(PauseGroup(f"g@{topic}/#"))
        operation = client.operations.list(subject=f"g@{topic}/#", latest=1)[0]
        client.operations.ended(operation.number)
        assert subscription.state == "paused"
        assert subscription.fetch(1, timeout=0.05) == []
        first.ack(sync=True)


def test_a_callback_that_calls_the_client_is_told_that_it_would_wait_for_itself(
    client: Client, topic: str
) -> None:
    noted = []

    def asks(_notice: object) -> None:
        try:
            client.topics.list()
        except WouldWaitForItself as error:
            noted.append(error)

    published(client, topic, 1)
    with client.subscribe(f"$share/g/{topic}/#", start="earliest", on_grant=asks) as subscription:
        next(iter(subscription)).ack()
    assert noted


def test_a_watch_and_a_read_are_iterated_over(client: Client, topic: str) -> None:
    payloads = published(client, topic, 10)
    first = next(client.watch("groups"))
    assert first.anew
    reader = client.read(f"{topic}/#")
    assert sum(map(len, reader.batches())) == len(payloads)
    assert sorted(reader.streams) == [f"{topic}/0/0", f"{topic}/0/1"]
    assert [record.payload for record in client.read(f"{topic}/#", records_max=0)] == []


def test_a_closed_client_may_be_closed_again(endpoint: str) -> None:
    client = dss_client.sync.connect(endpoint=endpoint)
    client.close()
    client.close()
