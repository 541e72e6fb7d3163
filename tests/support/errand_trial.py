"""A trial of operators who handle failed records, on a daemon that may die at any step.

Each record has a *fate*: how it fails, and which operations are applied to it. `Errands` notes
which of these were asked for and which ended, each fact before the daemon can act on it, or after
it answered. `check` lets a later daemon end what was begun, and takes all records that come.
`judged` checks what that daemon left on the disk: each record must be where the last ended
operation put it, or where an operation without an answer may have put it; once, and nowhere else.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import dss_client
from dss_client import Client, DeliveredRecord, Subscription
from dss_client.changes import (
    BuryRetries,
    DiscardDeadLetters,
    RedeliverRecords,
    RedriveDeadLetters,
    RetryNow,
    SkipRetries,
    Undo,
)
from dss_client.queues import QueueEntry
from dss_core.lane import DEAD, RETRY
from support.client_trial import done_before
from support.queue_history import QueueHistory, history_of

TOPIC, GROUP, MARK = "orders", "steered", "mark"
FILTER = f"$share/{GROUP}/{TOPIC}/#"
COPIES = 2
"""Records of each fate: one of them is a canary."""
LONG_S = 3_600.0
PATIENCE_S = 60.0
POLL_S = 0.02

ACKED, WAITS, IS_DEAD, GONE = "acknowledged", "waits", "is dead", "was given up"

Change = (
    RedriveDeadLetters
    | DiscardDeadLetters
    | RetryNow
    | SkipRetries
    | BuryRetries
    | RedeliverRecords
    | Undo
)


class Deed(NamedTuple):
    """An operation on the records of a fate."""

    name: str
    becomes: str
    """Where they are once it has ended."""
    brings: bool = False
    """It delivers them to whoever is a member then, which may be `check`."""


class Fate(NamedTuple):
    """How records fail, and what operators do then."""

    fails: str
    """Where they are after their first hand-out."""
    deeds: tuple[Deed, ...] = ()
    fails_again: str = ""
    """How they fail once they are brought back."""

    def places(self, asked: set[str], ended: set[str]) -> set[str]:
        """Where they may be, by what is known of the deeds."""
        known = self.fails
        for deed in self.deeds:
            if deed.name in ended:
                known = deed.becomes
        begun = [each for each in self.deeds if each.name in asked - ended]
        brought = {ACKED for each in begun if each.brings}
        return {known, *brought, *(each.becomes for each in begun)}


FATES: Mapping[str, Fate] = {
    "acked": Fate(ACKED),
    "waiting": Fate(WAITS),
    "hurried": Fate(WAITS, (Deed("hurry", ACKED),)),
    "hurried and not": Fate(WAITS, (Deed("hurry again", ACKED), Deed("not now", WAITS))),
    "skipped": Fate(WAITS, (Deed("skip", GONE),)),
    "buried": Fate(WAITS, (Deed("bury", IS_DEAD),)),
    "buried and back": Fate(WAITS, (Deed("bury again", IS_DEAD), Deed("unbury", ACKED))),
    "dead": Fate(IS_DEAD),
    "redriven": Fate(IS_DEAD, (Deed("redrive", ACKED),)),
    "stubborn": Fate(
        IS_DEAD, (Deed("redrive what fails", IS_DEAD, brings=True),), fails_again=IS_DEAD
    ),
    "taken back": Fate(
        IS_DEAD,
        (Deed("redrive what waits", WAITS, brings=True), Deed("take back", IS_DEAD)),
        fails_again=WAITS,
    ),
    "discarded": Fate(IS_DEAD, (Deed("discard", GONE),)),
    "redelivered": Fate(ACKED, (Deed("redeliver", ACKED),)),
    "redelivered and not": Fate(ACKED, (Deed("redeliver again", ACKED), Deed("undeliver", ACKED))),
}
NAMES = tuple(FATES)
RECORDS = len(FATES) * COPIES


def fate_of(number: int) -> str:
    """The name of the fate of a record."""
    return NAMES[number % len(NAMES)]


@dataclass(slots=True)
class Errands:
    """What was tried, and what the daemon answered."""

    stored: set[int] = field(default_factory=set)
    settled: bool = False
    """All records were handed out, and are where their fates begin."""
    asked: set[str] = field(default_factory=set)
    ended: set[str] = field(default_factory=set)
    handed_out: Counter[int] = field(default_factory=Counter)
    acking: set[int] = field(default_factory=set)
    acked: set[int] = field(default_factory=set)
    """The daemon confirmed that this is durable."""


# The trial


async def perform(errands: Errands, endpoint: str, ended: Awaitable[object]) -> bool:
    """Do the work until it is complete or the daemon ends; tells which."""
    return await done_before(_all(errands, endpoint), ended)


async def _all(errands: Errands, endpoint: str) -> None:
    async with (
        dss_client.connect("member", endpoint=endpoint) as client,
        asyncio.timeout(PATIENCE_S),
    ):
        await client.topics.create(TOPIC, partitions=2)
        await client.groups.create(FILTER, start="earliest", max_deliver=3, backoff=[LONG_S])
        async with client.producer(TOPIC) as producer:
            for number in range(RECORDS):
                await producer.send(b"%d" % number, key=b"%d" % number)
                errands.stored.add(number)
        await _until_settled(client, errands)
        await client.topics.create(MARK, partitions=1)
        async with client.producer(MARK) as producer:
            await producer.send(b"here it begins")
        operator = _Operator(client, errands)
        await operator.without_members()
        async with (
            client.subscribe(FILTER) as subscription,
            asyncio.TaskGroup() as tasks,
        ):
            taking = tasks.create_task(_take(subscription, errands), name="member")
            await operator.with_a_member()
            taking.cancel()


async def _until_settled(client: Client, errands: Errands) -> None:
    """Each record fails as its fate says."""
    fates = Counter(FATES[fate_of(each)].fails for each in range(RECORDS))
    expected = (0, fates[WAITS], fates[IS_DEAD])
    async with client.subscribe(FILTER) as subscription:
        while await _stands(client) != expected:
            for record in await subscription.fetch(RECORDS, POLL_S):
                await _meet(record, FATES[fate_of(int(record.payload))].fails, errands)
        await subscription.drain()
    errands.settled = True


async def _stands(client: Client) -> tuple[int, int, int]:
    group = (await client.groups.describe(GROUP)).group
    return group.lag, group.retrying, group.dead


async def _meet(record: DeliveredRecord, fails: str, errands: Errands) -> None:
    number = int(record.payload)
    # A durably acknowledged record comes only if an operator asks for it once more.
    assert number not in errands.acked or fate_of(number).startswith("redelivered"), record
    errands.handed_out[number] += 1
    if fails == WAITS:
        await record.nak(LONG_S, error=fate_of(number))
    elif fails == IS_DEAD:
        await record.reject(fate_of(number))
    else:
        errands.acking.add(number)
        await record.ack(sync=True)
        errands.acked.add(number)


async def _take(subscription: Subscription, errands: Errands) -> None:
    """Records that come back fail as their fate says, or are acknowledged."""
    async for record in subscription:
        fails = FATES[fate_of(int(record.payload))].fails_again
        await _meet(record, fails, errands)


class _Operator:
    """Carries out the deeds, each to its end."""

    def __init__(self, client: Client, errands: Errands) -> None:
        self._client = client
        self._errands = errands
        self._numbers: dict[str, int] = {}

    async def without_members(self) -> None:
        """The deeds that need no member, and their undo."""
        await self._deed("hurry again", RetryNow(GROUP, error=await self._error("hurried and not")))
        await self._undo("not now", "hurry again")
        await self._deed("redeliver again", await self._redelivery("redelivered and not"))
        await self._undo("undeliver", "redeliver again")
        await self._deed(
            "discard", DiscardDeadLetters(GROUP, error=await self._error("discarded", "dead"))
        )

    async def with_a_member(self) -> None:
        """The deeds that members carry out."""
        error = self._error
        await self._deed("hurry", RetryNow(GROUP, error=await error("hurried")))
        await self._deed("skip", SkipRetries(GROUP, error=await error("skipped")))
        await self._deed("bury", BuryRetries(GROUP, error=await error("buried")))
        await self._deed("bury again", BuryRetries(GROUP, error=await error("buried and back")))
        await self._undo("unbury", "bury again")
        await self._deed("redrive", await self._redrive("redriven"))
        await self._deed("redrive what fails", await self._redrive("stubborn"), state="failed")
        await self._deed("redrive what waits", await self._redrive("taken back", canary=None))
        await self._entries("taken back", RETRY)
        await self._undo("take back", "redrive what waits")
        await self._deed("redeliver", await self._redelivery("redelivered"))

    async def _deed(self, name: str, change: Change, *, state: str = "done") -> None:
        self._errands.asked.add(name)
        begun = await self._client.operations.apply(change, operation_id=name)
        ended = await self._client.operations.ended(begun.number)
        assert ended.state == state, ended
        self._numbers[name] = begun.number
        self._errands.ended.add(name)

    async def _undo(self, name: str, undone: str) -> None:
        await self._deed(name, Undo(self._numbers[undone]))

    async def _redrive(self, fate: str, canary: int | None = 1) -> RedriveDeadLetters:
        error = await self._error(fate, "dead")
        return RedriveDeadLetters(GROUP, error=error, canary=canary)

    async def _error(self, fate: str, level: str = "retry") -> str:
        """The fingerprint of the error of a fate's records."""
        counts = await self._client.queues.errors(GROUP, level=level)
        [found] = [each.fingerprint for each in counts.errors if each.error == fate]
        return found

    async def _entries(self, fate: str, level: int) -> None:
        """Wait until all records of the fate are in a queue."""
        while True:
            entries = [each async for each in _entries(self._client, level)]
            if sum(fate_of(int(each.payload)) == fate for each in entries) == COPIES:
                return
            await asyncio.sleep(POLL_S)

    async def _redelivery(self, fate: str) -> RedeliverRecords:
        places = [
            (record.stream, record.offset)
            async for record in self._client.read(f"{TOPIC}/#")
            if fate_of(int(record.payload)) == fate
        ]
        (stream, offset), *more = places
        spans = tuple(dss_client.changes.RecordSpan(*each) for each in more)
        return RedeliverRecords(GROUP, stream, offset, more=spans)


def _entries(client: Client, level: int) -> AsyncGenerator[QueueEntry, None]:
    look = client.queues.dead_letters if level == DEAD else client.queues.retries
    return look(GROUP, whole=True)


# What is found


async def check(endpoint: str, errands: Errands) -> None:
    """Let all operations end, and acknowledge all records that come."""
    async with dss_client.connect("next", endpoint=endpoint) as client, asyncio.timeout(PATIENCE_S):
        async with client.subscribe(FILTER) as subscription:
            while not await _is_settled(client):
                for record in await subscription.fetch(RECORDS, POLL_S):
                    await _meet(record, ACKED, errands)
            await subscription.drain()
        sums = await client.groups.verify(GROUP, scan=True)
        assert not any(each.problem for each in sums), sums


async def _is_settled(client: Client) -> bool:
    running = [each for each in await client.operations.list() if not each.ended]
    lag, _, _ = await _stands(client)
    if running or lag:
        return False
    waiting = [each async for each in _entries(client, RETRY)]
    return all(each.due_ms > each.entered_at_us // 1_000 + 1_000 for each in waiting)


async def judged(errands: Errands, data: Path) -> str:
    """What is wrong with the places of records."""
    history = await history_of(data, GROUP, TOPIC)
    return "\n".join([*history.wrong(), *_misplaced(errands, history), *_undone(errands, history)])


def _misplaced(errands: Errands, history: QueueHistory) -> Iterator[str]:
    asked, ended = errands.asked, errands.ended
    for each in history.origins():
        number = int(each.payload)
        way = history.way(each.place)
        where = {RETRY: WAITS, DEAD: IS_DEAD}.get(way[-1].level, "never failed")
        if not history.is_open(way[-1]):
            where = ACKED if number in errands.acking else GONE
        allowed = FATES[fate_of(number)].places(asked, ended)
        if where not in allowed:
            yield f"{number}, {fate_of(number)}, {where} and not {allowed}: {way}, {asked - ended}"


def _undone(errands: Errands, history: QueueHistory) -> Iterator[str]:
    """What ended operations have not done, or did too much."""
    for number in range(RECORDS):
        fate, times = fate_of(number), errands.handed_out[number]
        if fate == "redelivered" and "redeliver" in errands.ended and times < 2:
            yield f"{number} did not come once more"
        if fate == "redelivered and not" and "undeliver" in errands.ended and times != 1:
            yield f"{number} came {times} times though that was taken back"
    for row in history.files.operations:
        if row.kind == "dlq.redrive" and row.operation_id in errands.ended:
            named = history.named_by(row, DEAD)
            back = {
                each.source
                for each in history.records.values()
                if each.place.level == RETRY
                and each.entry is not None
                and (each.entry.source_level, each.entry.operation) == (DEAD, row.number)
            }
            is_stopped = row.operation_id == "redrive what fails"
            if not back <= named or len(back) != (1 if is_stopped else COPIES):
                yield f"{row.operation_id} brought back {back} of {named}"
