import asyncio
import random
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from dss_client import DeliveredRecord
from dss_client import _keyed_runner as keyed_runner
from dss_client._grant import HeldGrant
from dss_client._grant_report import GrantReport
from dss_client._keyed_runner import RUN_QUEUED_OF_CONCURRENCY, KeyedRunner
from dss_client.record import grant_behind
from dss_client.testing import until
from dss_core.errors import DssError, IllegalArgument, SessionTakenOver
from support.taken_records import Records, grant_of, taken


async def coming(
    *pieces: Records,
    error: DssError | None = None,
    then: Callable[[], object] | None = None,
    end: Callable[[], object] | None = None,
) -> AsyncIterator[DeliveredRecord]:
    """The records; the last piece and the end only once conditions hold."""
    for piece in pieces:
        if then is not None and piece is pieces[-1]:
            await until(then)
        for record in piece:
            yield record
            await asyncio.sleep(0)
    if end is not None:
        await until(end)
    if error is not None:
        raise error


async def sure() -> None:
    """The grants are still held."""


async def run(
    handler: Callable[[DeliveredRecord], Awaitable[None]],
    records: AsyncIterator[DeliveredRecord],
    *,
    concurrency: int,
) -> KeyedRunner:
    runner = KeyedRunner(handler, concurrency=concurrency, wait_sure=sure)
    async with asyncio.timeout(60):
        await runner.run(records)
    return runner


class Clock:
    """The runner's clock, which stands until a test moves it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 1_000.0
        monkeypatch.setattr(keyed_runner, "monotonic", lambda: self.now_s)


def news(grant: HeldGrant) -> GrantReport:
    """What the grant reports now."""
    report = grant.report(lambda waiters: 1)
    assert report is not None
    return report


def naks(report: GrantReport) -> list[int]:
    return [at for low, high, *_ in report.naks for at in range(low, high)]


async def test_records_of_one_key_are_handled_in_order_and_never_at_once() -> None:
    chance = random.Random(3)
    grant = grant_of()
    records = taken(grant, 0, *(chance.choice([b"a", b"b", b"c", None]) for _ in range(300)))
    order: dict[bytes | None, list[int]] = defaultdict(list)
    busy: set[bytes | int] = set()
    most = 0

    async def handle(record: DeliveredRecord) -> None:
        nonlocal most
        assert record.key is None or record.key not in busy
        busy.add(record.key or record.offset)
        most = max(most, len(busy))
        for _ in range(chance.randrange(4)):
            await asyncio.sleep(0)
        busy.remove(record.key or record.offset)
        order[record.key].append(record.offset)

    await run(handle, coming(records), concurrency=3)
    assert news(grant).acked == ((0, 300),)
    assert most == 3
    for key in (b"a", b"b", b"c"):
        assert order[key] == sorted(order[key])


@pytest.mark.parametrize("handler", [lambda record: None, lambda: None], ids=["plain", "no record"])
async def test_a_handler_that_cannot_be_one_ends_the_run_and_settles_nothing(
    handler: Callable[[DeliveredRecord], Awaitable[None]],
) -> None:
    grant = grant_of()
    with pytest.raises(IllegalArgument, match="async function of one record"):
        await run(handler, coming(taken(grant, 0, b"a", b"b")), concurrency=1)
    report = news(grant)
    assert (report.acked, naks(report)) == ((), [])


async def test_a_type_error_within_a_handler_is_a_failure_of_its_record() -> None:
    grant = grant_of()

    async def handle(record: DeliveredRecord) -> None:
        len(record.offset)  # type: ignore[arg-type] # what a user gets wrong

    await run(handle, coming(taken(grant, 0, None)), concurrency=1)
    assert naks(news(grant)) == [0]


async def test_followers_of_a_refused_record_wait_until_it_came_again() -> None:
    grant = grant_of()
    handled: list[int] = []

    async def handle(record: DeliveredRecord) -> None:
        handled.append(record.offset)
        if len(handled) == 1:
            raise ValueError

    first = taken(grant, 0, b"a", b"a", b"b", b"a")
    again = taken(grant, 0, b"a", again=True)
    records = coming(first, again, then=lambda: handled == [0, 2], end=lambda: len(handled) == 5)
    runner = await run(handle, records, concurrency=1)
    assert handled == [0, 2, 0, 1, 3]
    report = news(grant)
    assert (report.acked, naks(report), report.frontier) == (((0, 4),), [], 4)
    assert runner._chains == {}


async def test_followers_wait_on_while_the_refused_record_is_refused_anew() -> None:
    grant = grant_of()
    handled: list[int] = []

    async def handle(record: DeliveredRecord) -> None:
        handled.append(record.offset)
        if record.offset == 0 and len(handled) < 3:
            await record.nak()

    first = taken(grant, 0, b"a", b"a")
    second = taken(grant, 0, b"a", again=True)
    third = taken(grant, 0, b"a", again=True)

    async def one_after_the_other() -> AsyncIterator[DeliveredRecord]:
        for record in first:
            yield record
        await until(lambda: len(handled) == 1)
        yield second[0]
        await until(lambda: len(handled) == 2)
        yield third[0]
        await until(lambda: len(handled) == 4)

    await run(handle, one_after_the_other(), concurrency=2)
    assert handled == [0, 0, 0, 1]


async def test_what_waits_behind_a_refused_record_leaves_room_for_it_to_come_again() -> None:
    grant = grant_of()
    handled: list[int] = []

    async def handle(record: DeliveredRecord) -> None:
        handled.append(record.offset)
        if len(handled) == 1:
            raise ValueError

    many = RUN_QUEUED_OF_CONCURRENCY * 5
    first = taken(grant, 0, *[b"a"] * many)
    again = taken(grant, 0, b"a", again=True)
    records = coming(first, again, end=lambda: len(handled) > many)
    await run(handle, records, concurrency=1)
    assert handled == [0, *range(many)]


async def test_no_more_records_are_taken_than_there_is_room_for() -> None:
    grant = grant_of()
    records = taken(grant, 0, *(b"%d" % (number % 2) for number in range(50)))
    pulled = 0
    go_on = asyncio.Event()

    async def counted() -> AsyncIterator[DeliveredRecord]:
        nonlocal pulled
        for record in records:
            pulled += 1
            yield record

    async def handle(record: DeliveredRecord) -> None:
        await go_on.wait()

    running = asyncio.ensure_future(run(handle, counted(), concurrency=2))
    await until(lambda: pulled == 2 * RUN_QUEUED_OF_CONCURRENCY)
    for _ in range(20):
        await asyncio.sleep(0)
    assert pulled == 2 * RUN_QUEUED_OF_CONCURRENCY
    go_on.set()
    await running
    assert news(grant).acked == ((0, 50),)


async def test_what_waits_behind_a_refused_record_is_left_when_the_records_end() -> None:
    grant = grant_of()
    handled: list[int] = []

    async def handle(record: DeliveredRecord) -> None:
        handled.append(record.offset)
        if record.offset == 0:
            raise ValueError

    runner = await run(handle, coming(taken(grant, 0, b"a", b"a", b"b", b"a")), concurrency=2)
    assert handled == [0, 2]
    left, chains = runner.left()
    assert [record.offset for record in left] == [1, 3]
    report = news(grant)
    assert (naks(report), report.frontier, report.handed_out) == ([0], 1, ())
    assert set(chains) == {(grant, b"a")}


async def test_what_waits_behind_a_record_that_came_again_is_left_when_the_records_end() -> None:
    grant = grant_of()
    handled: list[int] = []
    go_on = asyncio.Event()

    async def handle(record: DeliveredRecord) -> None:
        handled.append(record.offset)
        if len(handled) == 1:
            raise ValueError
        await go_on.wait()

    first, again = taken(grant, 0, b"a", b"a"), taken(grant, 0, b"a", again=True)
    records = coming(first, again, then=lambda: handled, end=lambda: len(handled) == 2)
    running = asyncio.ensure_future(run(handle, records, concurrency=1))
    await until(lambda: len(handled) == 2)
    for _ in range(10):
        await asyncio.sleep(0)
    go_on.set()
    runner = await running
    assert handled == [0, 0]
    assert [record.offset for record in runner.left()[0]] == [1]


async def test_what_was_acked_before_the_handler_raised_holds_nobody_up() -> None:
    grant = grant_of()

    async def handle(record: DeliveredRecord) -> None:
        if record.offset == 1:
            await record.ack()
            raise ValueError

    runner = await run(handle, coming(taken(grant, 0, b"a", b"a", b"a")), concurrency=2)
    report = news(grant)
    assert (report.acked, report.naks) == (((0, 3),), ())
    assert runner._chains == {}


async def test_what_is_refused_behind_its_ack_stays_acked_and_holds_nobody_up() -> None:
    grant = grant_of()

    async def handle(record: DeliveredRecord) -> None:
        if record.offset == 0:
            await record.ack()
            assert news(grant).acked == ((0, 1),)
            await record.nak()

    runner = await run(handle, coming(taken(grant, 0, b"a", b"a")), concurrency=2)
    assert (naks(news(grant)), runner._chains) == ([], {})


async def test_followers_go_on_when_a_refused_record_is_acked_after_all() -> None:
    grant = grant_of()
    first, second = records = taken(grant, 0, b"a", b"a")
    runner: KeyedRunner

    async def handle(record: DeliveredRecord) -> None:
        if record is first:
            raise ValueError

    async def then_acked() -> AsyncIterator[DeliveredRecord]:
        for record in records:
            yield record
        await until(lambda: first.refused)
        await first.ack()
        news(grant)
        await until(lambda: second.offset in grant.acks)

    runner = KeyedRunner(handle, concurrency=2, wait_sure=sure)
    grant.refused_acked = lambda: runner.refused_acked(grant)
    async with asyncio.timeout(60):
        await runner.run(then_acked())
    assert runner._chains == {}


async def test_what_the_handler_refused_itself_comes_again_before_its_followers() -> None:
    grant = grant_of()
    handled: list[int] = []

    async def handle(record: DeliveredRecord) -> None:
        handled.append(record.offset)
        if len(handled) == 1:
            await record.nak()
            raise ValueError

    first, again = taken(grant, 0, b"a", b"a"), taken(grant, 0, b"a", again=True)
    records = coming(first, again, end=lambda: len(handled) == 3)
    await run(handle, records, concurrency=2)
    assert handled == [0, 0, 1]
    assert naks(news(grant)) == []


@pytest.mark.parametrize("refused", [False, True])
async def test_a_record_that_comes_again_while_it_is_handled_is_handled_again_if_it_was_refused(
    refused: bool,
) -> None:
    grant = grant_of()
    handled: list[tuple[int, int]] = []
    go_on = asyncio.Event()

    async def handle(record: DeliveredRecord) -> None:
        handled.append((record.offset, record.attempt))
        if len(handled) == 1:
            await go_on.wait()
            if refused:
                raise ValueError

    async def arriving() -> AsyncIterator[DeliveredRecord]:
        for record in taken(grant, 0, b"a", b"a"):
            yield record
        await until(lambda: handled)
        for record in taken(grant, 0, b"a", again=True):
            yield record
        go_on.set()

    await run(handle, arriving(), concurrency=2)
    again = [(0, 2), (1, 1)] if refused else [(1, 1)]
    assert handled == [(0, 1), *again]


async def test_what_came_again_is_not_handled_once_the_ack_of_before_is_durable() -> None:
    grant = grant_of()
    handled: list[tuple[int, int]] = []
    waiting: list[asyncio.Future[None]] = []

    async def handle(record: DeliveredRecord) -> None:
        handled.append((record.offset, record.attempt))

    def tokened(waiters: list[asyncio.Future[None]]) -> int:
        waiting.extend(waiters)
        return 1

    async def arriving() -> AsyncIterator[DeliveredRecord]:
        (record,) = taken(grant, 0, None)
        yield record
        await until(lambda: bool(grant.acks))
        durable = asyncio.ensure_future(record.ack(sync=True))
        await asyncio.sleep(0)
        assert grant.report(tokened) is not None
        # It was sent before the daemon had the ack, and comes before the daemon's answer.
        came = taken(grant, 0, None, again=True)
        waiting[0].set_result(None)
        await durable
        for again in came:
            yield again

    await run(handle, arriving(), concurrency=2)
    assert handled == [(0, 1)]


async def test_a_handler_that_something_cancelled_is_refused_and_its_worker_goes_on() -> None:
    grant = grant_of()

    async def handle(record: DeliveredRecord) -> None:
        if record.offset == 0:
            gone = asyncio.get_running_loop().create_future()
            gone.cancel()
            await gone

    await run(handle, coming(taken(grant, 0, None, b"a", b"a")), concurrency=1)
    report = news(grant)
    assert (naks(report), report.acked) == ([0], ((1, 3),))


class Ends(BaseException):
    """Raised by a handler; it is no failure, as `SystemExit` is none."""


@pytest.mark.parametrize("end", [Ends(), SystemExit(3), KeyboardInterrupt()], ids=repr)
async def test_what_ends_the_program_ends_the_run_and_nothing_of_its_key_overtakes_it(
    end: BaseException,
) -> None:
    grant = grant_of()
    handled: list[int] = []

    async def handle(record: DeliveredRecord) -> None:
        handled.append(record.offset)
        if record.offset == 1:
            raise end

    runner = KeyedRunner(handle, concurrency=4, wait_sure=sure)
    with pytest.raises(type(end)) as raised:
        await runner.run(coming(taken(grant, 0, b"a", b"a", b"a", b"a")))
    assert raised.value is end
    assert handled == [0, 1]
    assert [record.offset for record in runner.unfinished()] == [1]
    report = news(grant)
    assert (report.acked, naks(report)) == (((0, 1),), [])


async def test_what_waits_for_its_turn_is_not_handled_once_its_stream_is_taken_back() -> None:
    grant, other = grant_of(), grant_of(2)
    pieces = taken(grant, 0, b"a", b"a", b"a", None, None), taken(other, 0, b"a")
    handled: list[tuple[int, int]] = []

    async def handle(record: DeliveredRecord) -> None:
        handled.append((record.grant_number, record.offset))
        if record.grant_number == 1:
            grant.stopped = True

    runner = await run(handle, coming(*pieces), concurrency=1)
    assert handled == [(1, 0), (2, 0)]
    report = news(grant)
    assert (report.acked, report.frontier, report.handed_out) == (((0, 1),), 1, ())
    assert set(runner._chains) == {(grant, None)}


async def test_a_handler_of_the_session_before_ends_no_chain_of_a_grant_numbered_alike() -> None:
    before, now = grant_of(1), grant_of(1)
    began: list[tuple[HeldGrant, int]] = []
    ended: list[tuple[HeldGrant, int]] = []
    may_end = {(before, 0): asyncio.Event(), (now, 0): asyncio.Event(), (now, 1): asyncio.Event()}

    async def handle(record: DeliveredRecord) -> None:
        at = grant_behind(record), record.offset
        began.append(at)
        await may_end[at].wait()
        ended.append(at)

    async def records() -> AsyncIterator[DeliveredRecord]:
        yield taken(before, 0, b"a")[0]
        await until(lambda: (before, 0) in began)
        before.stopped = True
        runner.drop(before)
        first, second = taken(now, 0, b"a", b"a")
        yield first
        await until(lambda: (now, 0) in began)
        may_end[before, 0].set()
        await until(lambda: runner._busy == 1)
        yield second
        for _ in range(3):
            await asyncio.sleep(0)
        assert (now, 1) not in began
        may_end[now, 0].set()
        may_end[now, 1].set()

    runner = KeyedRunner(handle, concurrency=3, wait_sure=sure)
    async with asyncio.timeout(60):
        await runner.run(records())
    assert ended == began == [(before, 0), (now, 0), (now, 1)]


async def test_what_waits_in_the_chains_of_a_stopped_grant_is_forgotten() -> None:
    grant, other = grant_of(), grant_of(2)
    handled: list[tuple[int, int]] = []

    async def handle(record: DeliveredRecord) -> None:
        handled.append((record.grant_number, record.offset))
        if record.grant_number == 1 and record.offset == 0:
            raise ValueError

    runner = KeyedRunner(handle, concurrency=1, wait_sure=sure)

    def stop() -> bool:
        if (1, 0) not in handled:
            return False
        grant.stopped = True
        runner.drop(grant)
        return True

    records = coming(taken(grant, 0, b"a", b"a", b"a"), taken(other, 0, b"a"), then=stop)
    async with asyncio.timeout(60):
        await runner.run(records)
    assert handled == [(1, 0), (2, 0)]
    assert runner.left() == ([], {})


async def test_after_a_silence_nothing_is_handled_before_it_is_known_that_the_grant_is_held(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(monkeypatch)
    grant = grant_of()
    handled: list[int] = []
    asked: list[int] = []

    async def ask() -> None:
        asked.append(len(handled))
        if handled:
            await asyncio.sleep(0)
            grant.stopped = True

    async def handle(record: DeliveredRecord) -> None:
        handled.append(record.offset)
        if record.offset == 2:
            clock.now_s += 10

    runner = KeyedRunner(handle, concurrency=1, wait_sure=ask)
    await runner.run(coming(taken(grant, 0, b"a", b"a", b"a", b"a", None)))
    assert handled == [0, 1, 2]
    assert asked == [0, 3]


async def test_handlers_that_wait_for_certainty_ask_once_and_for_as_long_as_it_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(monkeypatch)
    grant = grant_of()
    handled: list[int] = []
    asked = 0

    async def ask() -> None:
        nonlocal asked
        asked += 1
        for _ in range(5):
            await asyncio.sleep(0)
        # The answer to the first question comes late.
        clock.now_s += 10 if asked == 1 else 0

    async def handle(record: DeliveredRecord) -> None:
        handled.append(record.offset)

    runner = KeyedRunner(handle, concurrency=3, wait_sure=ask)
    await runner.run(coming(taken(grant, 0, None, None, None)))
    assert (handled, asked) == ([0, 1, 2], 2)


async def test_a_cancelled_run_leaves_what_it_did_not_hand_out() -> None:
    grant = grant_of()
    stuck = asyncio.Event()

    async def handle(record: DeliveredRecord) -> None:
        stuck.set()
        await asyncio.get_running_loop().create_future()

    runner = KeyedRunner(handle, concurrency=1, wait_sure=sure)
    running = asyncio.ensure_future(runner.run(coming(taken(grant, 0, b"a", b"a", None, b"b"))))
    await stuck.wait()
    await until(lambda: runner._slots.qsize() == 2)
    running.cancel()
    await asyncio.wait([running])
    assert [record.offset for record in runner.left()[0]] == [1, 2, 3]
    assert news(grant).frontier == 1


@pytest.mark.parametrize("error", [ValueError("as I was cancelled"), None])
async def test_a_run_ends_though_its_handlers_make_something_else_of_their_cancellation(
    error: Exception | None,
) -> None:
    grant = grant_of()
    handled: list[int] = []
    stuck = asyncio.Event()

    async def handle(record: DeliveredRecord) -> None:
        handled.append(record.offset)
        stuck.set()
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            if error is not None:
                raise error from None

    runner = KeyedRunner(handle, concurrency=1, wait_sure=sure)
    running = asyncio.ensure_future(runner.run(coming(taken(grant, 0, None, None))))
    await stuck.wait()
    await until(lambda: runner._slots.qsize() == 1)
    running.cancel()
    done, _ = await asyncio.wait([running], timeout=5)
    assert done == {running}
    assert running.cancelled()
    assert handled == [0]
    assert [record.offset for record in runner.unfinished()] == ([] if error is None else [0])
    report = news(grant)
    assert (naks(report), report.acked) == ([], ((0, 1),) if error is None else ())


async def test_a_run_that_is_cancelled_before_it_is_sure_has_handed_out_nothing() -> None:
    grant = grant_of()
    asking = asyncio.Event()

    async def ask() -> None:
        asking.set()
        await asyncio.get_running_loop().create_future()

    async def handle(record: DeliveredRecord) -> None:
        """Never called."""

    runner = KeyedRunner(handle, concurrency=2, wait_sure=ask)
    running = asyncio.ensure_future(runner.run(coming(taken(grant, 0, b"a", b"a", None, None))))
    await asking.wait()
    await until(lambda: runner._busy == 3)
    running.cancel()
    await asyncio.wait([running])
    assert [record.offset for record in runner.left()[0]] == [0, 1, 2, 3]
    assert not grant.holds_any


async def test_a_run_goes_on_with_what_the_one_before_knew_of_refused_records() -> None:
    grant = grant_of()
    handled: list[int] = []

    async def handle(record: DeliveredRecord) -> None:
        handled.append(record.offset)
        if len(handled) == 1:
            raise ValueError

    before = await run(handle, coming(taken(grant, 0, b"a", b"a")), concurrency=1)
    records, chains = before.left()
    runner = KeyedRunner(handle, concurrency=1, wait_sure=sure)
    runner.resume(chains)
    async with asyncio.timeout(60):
        again = taken(grant, 0, b"a", again=True)
        await runner.run(coming(records, again, end=lambda: len(handled) == 3))
    assert handled == [0, 0, 1]


async def test_the_final_error_comes_after_what_was_being_handled() -> None:
    grant = grant_of()

    async def handle(record: DeliveredRecord) -> None:
        for _ in range(10):
            await asyncio.sleep(0)

    error = SessionTakenOver(client_id="me")
    with pytest.raises(SessionTakenOver):
        await run(handle, coming(taken(grant, 0, b"a"), error=error), concurrency=1)
    assert news(grant).acked == ((0, 1),)


def test_a_concurrency_below_one_is_refused() -> None:
    async def handle(record: DeliveredRecord) -> None:
        """Never called."""

    with pytest.raises(IllegalArgument):
        KeyedRunner(handle, concurrency=0, wait_sure=sure)
