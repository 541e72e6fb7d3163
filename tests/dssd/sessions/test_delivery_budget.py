"""What lies in the daemon for all clients: nobody holds more than is left free."""

import asyncio
from itertools import pairwise

from dss_core.limits import FRAME_BYTES_USUAL
from dssd.machines.delivery.events import Deliver
from dssd.sessions.delivery_budget import DeliveryAccount, DeliveryBudget
from dssd.sessions.outgoing import DELIVERY_WRITE_COPIES, Outgoing

MOST = 64 * FRAME_BYTES_USUAL
WANTED = 8 * FRAME_BYTES_USUAL


async def fills(account: DeliveryAccount) -> int:
    """Let a session read for a client that takes nothing, until it must wait."""
    while True:
        taking = asyncio.create_task(account.take(WANTED))
        await asyncio.sleep(0)
        if not taking.done():
            taking.cancel()
            await asyncio.wait([taking])
            return account.held_bytes
        account.queued(taking.result())
        account.read(taking.result())


async def test_each_that_takes_nothing_holds_no_more_than_is_left() -> None:
    budget = DeliveryBudget(MOST)
    held = [await fills(budget.account()) for _ in range(4)]
    assert held[0] <= MOST // 2
    assert all(later < earlier for earlier, later in pairwise(held))
    assert budget.held_bytes == sum(held) < MOST


async def test_the_sessions_of_one_owner_hold_no_more_together_than_is_left() -> None:
    budget = DeliveryBudget(MOST)
    for _ in range(20):
        await fills(budget.account("token:greedy"))
    greedy = budget.held_by("token:greedy")
    assert MOST // 4 < greedy <= MOST // 2 + 20 * FRAME_BYTES_USUAL
    assert await fills(budget.account("token:new")) >= (MOST - greedy) // 4
    alone = DeliveryBudget(MOST)
    for _ in range(20):
        await fills(alone.account())
    assert alone.held_bytes > budget.held_by("token:greedy"), "who have no owner count one by one"


async def test_an_owner_whose_sessions_gave_all_back_is_forgotten() -> None:
    budget = DeliveryBudget(MOST)
    account = budget.account("token:ann")
    await fills(account)
    assert budget.held_by("token:ann") == account.held_bytes > 0
    account.queued(-account.held_bytes)
    assert (budget.held_by("token:ann"), budget.held_bytes) == (0, 0)


async def test_a_session_that_holds_nothing_may_read_a_usual_frame() -> None:
    budget = DeliveryBudget(MOST)
    budget.account().queued(2 * MOST)
    assert await budget.account().take(WANTED) == FRAME_BYTES_USUAL


async def test_who_waits_goes_on_when_its_own_client_takes_something() -> None:
    budget = DeliveryBudget(MOST)
    account = budget.account()
    await fills(account)
    waiting = asyncio.create_task(account.take(WANTED))
    await asyncio.sleep(0)
    account.queued(-account.held_bytes)
    assert await asyncio.wait_for(waiting, 60) == WANTED


async def test_who_waits_goes_on_when_another_leaves() -> None:
    budget = DeliveryBudget(MOST)
    other, account = budget.account(), budget.account()
    other.queued(MOST)
    account.queued(1)
    waiting = asyncio.create_task(account.take(WANTED))
    await asyncio.sleep(0)
    other.queued(-MOST)
    assert await asyncio.wait_for(waiting, 60) == WANTED


async def test_a_wait_that_is_cancelled_takes_nothing() -> None:
    budget = DeliveryBudget(MOST)
    other, account = budget.account(), budget.account()
    other.queued(MOST)
    account.queued(1)
    waits = [asyncio.create_task(account.take(WANTED)) for _ in range(2)]
    await asyncio.sleep(0)
    waits[0].cancel()
    account.queued(-1)  # admits the other one, which is cancelled before it hears of it
    waits[1].cancel()
    await asyncio.wait(waits)
    assert all(wait.cancelled() for wait in waits)
    assert (account.held_bytes, budget.held_bytes) == (0, MOST)


async def test_what_is_queued_counts_until_it_is_written_or_dropped() -> None:
    account = DeliveryBudget(MOST).account()
    outgoing = Outgoing(account)
    for number in range(3):
        outgoing.put(Deliver(number, bytes(100), (), False, 1, 0, 1))
    outgoing.take()
    assert account.held_bytes == 200 + 100 * DELIVERY_WRITE_COPIES
    outgoing.written()
    outgoing.take()
    assert account.held_bytes == 100 + 100 * DELIVERY_WRITE_COPIES
    outgoing.close()
    assert account.held_bytes == 100 * DELIVERY_WRITE_COPIES
    outgoing.written()
    assert account.held_bytes == 0
