"""The law of producers: whatever is lost, refused and switched, a key's log is what was sent."""

import asyncio
import random
from collections import defaultdict
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, cast

from hypothesis import example, given
from hypothesis import strategies as st

from dss_client import Ack, Delivery, Producer
from dss_client._backoff import Backoff
from dss_client._connection import Connection
from dss_core.errors import DiskFull, DssError, ProducerForgotten, SequenceTooOld
from dss_core.routing import Router
from support.played_produce import Fate, PlayedDaemon

KEYS = [b"%d" % number for number in range(7)]
ROUNDS = 40
SHAPES = st.sampled_from([(1, 1), (2, 1), (3, 1), (4, 1), (6, 1), (6, 3), (12, 3), (12, 2)])


class Sent:
    """What was sent, in order, and what became of it."""

    def __init__(self) -> None:
        self.of_key: dict[bytes | None, list[bytes]] = defaultdict(list)
        self.deliveries: dict[bytes, Delivery] = {}
        self.columns: list[tuple[list[bytes], asyncio.Task[list[Ack]]]] = []
        self._count = 0

    def payload(self, key: bytes | None) -> bytes:
        self._count += 1
        payload = b"%d" % self._count
        self.of_key[key].append(payload)
        return payload


async def send(producer: Producer, chance: random.Random, sent: Sent) -> None:
    for _ in range(ROUNDS):
        for _ in range(chance.randint(1, 12)):
            key = chance.choice([None, *KEYS])
            payload = sent.payload(key)
            sent.deliveries[payload] = producer.send_nowait(payload, key=key)
            if chance.random() < 0.2:
                producer.call.close(chance.randrange(len(producer.call.open_frames)))
        if chance.random() < 0.1:
            keys = [*KEYS, *KEYS]
            payloads = [sent.payload(key) for key in keys]
            # A task of its own: it may wait for nothing until its frames are handed over.
            sending = asyncio.create_task(producer.send_columns(payloads, keys))
            sent.columns.append((payloads, sending))
            await asyncio.sleep(0)
        for _ in range(chance.randint(0, 6)):
            await asyncio.sleep(0)


async def failure_of(outcome: Coroutine[Any, Any, Ack]) -> DssError | None:
    try:
        await outcome
    except DssError as error:
        return error
    return None


async def run(seed: int, router: Router, first: tuple[int, int], fate: Fate) -> None:
    chance = random.Random(seed)
    daemon = PlayedDaemon(chance, router, first, fate)
    failures: dict[bytes, DssError] = {}
    sent = Sent()
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:

        def spawn(work: Coroutine[Any, Any, None], name: str) -> "asyncio.Task[None]":
            return tasks.create_task(work, name=name)

        fate.faults, faults = 0, fate.faults
        async with Producer(cast("Connection", daemon), "t", spawn=spawn) as producer:
            fate.faults = faults
            producer.call._backoff = Backoff(0, 0)
            await send(producer, chance, sent)
            with suppress(DiskFull, ProducerForgotten, SequenceTooOld):
                # Of what nobody awaits yet.
                await producer.flush()
            for payload, delivery in sent.deliveries.items():
                error = await failure_of(delivery._frame.outcome_of(delivery._row))
                if error is not None:
                    failures[payload] = error
            for payloads, sending in sent.columns:
                (outcome,) = await asyncio.gather(sending, return_exceptions=True)
                if isinstance(outcome, DssError):
                    failures.update(dict.fromkeys(payloads, outcome))
    judge(daemon, sent, failures)


def judge(daemon: PlayedDaemon, sent: Sent, failures: dict[bytes, DssError]) -> None:
    stored: dict[bytes | None, list[bytes]] = defaultdict(list)
    for part in daemon.parts:
        for records in part.records.values():
            for key, payload in records:
                stored[key].append(payload)
    in_columns = {payload for payloads, _ in sent.columns for payload in payloads}
    for key, payloads in sent.of_key.items():
        known = set(stored[key])
        assert len(known) == len(stored[key]), "stored twice"
        for payload in payloads:
            error = failures.get(payload)
            if error is None:
                assert payload in known, "acknowledged, and not stored"
            elif error.definite and payload not in in_columns:
                assert payload not in known, "failed for certain, and stored"
        if key is not None:
            assert stored[key] == [payload for payload in payloads if payload in known]
    # Nothing fails but what was refused for itself, or of what nobody can tell.
    allowed = {DiskFull.code, ProducerForgotten.code, SequenceTooOld.code}
    assert {error.code for error in failures.values()} <= allowed


@given(
    seed=st.integers(0, 1 << 32),
    router=st.sampled_from(Router),
    first=SHAPES,
    switches=st.lists(SHAPES, max_size=6),
    faults=st.integers(0, 30),
    forgets=st.booleans(),
)
@example(1, Router.BLOCK, (4, 1), [(6, 1)], 5, False)
@example(261, Router.RANGE, (1, 1), [(1, 1)], 44, False)
@example(29, Router.BLOCK, (3, 1), [], 42, False)
def test_a_keys_log_is_what_was_sent_each_once_and_in_order(
    seed: int,
    router: Router,
    first: tuple[int, int],
    switches: list[tuple[int, int]],
    faults: int,
    forgets: bool,
) -> None:
    asyncio.run(run(seed, router, first, Fate(switches, faults, forgets)))


def test_what_was_sent_once_to_many_streams_goes_on_where_its_producer_was_forgotten() -> None:
    async def run() -> None:
        daemon = PlayedDaemon(random.Random(0), Router.BLOCK, (6, 1), Fate([], 0))
        keys = [b"%d" % number for number in range(24)]

        async with asyncio.TaskGroup() as tasks:

            def spawn(work: Coroutine[Any, Any, None], name: str) -> "asyncio.Task[None]":
                return tasks.create_task(work, name=name)

            async with Producer(cast("Connection", daemon), "t", spawn=spawn) as producer:
                producer.call._backoff = Backoff(0, 0)
                for turn in (b"0", b"1", b"2"):
                    sent = [producer.send_nowait(turn, key=key) for key in keys]
                    assert [(await each).repeated for each in sent] == [False] * len(keys)
                    daemon.forget(daemon.parts[0])
        stored = [record for records in daemon.parts[0].records.values() for record in records]
        assert sorted(stored) == sorted((key, turn) for key in keys for turn in (b"0", b"1", b"2"))

    asyncio.run(run())
