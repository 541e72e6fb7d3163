import asyncio
from collections.abc import AsyncIterator

import pytest

from dssd.leaders import borrower_mailboxes
from dssd.leaders.borrower_mailboxes import BorrowerMailboxes
from dssd.machines.messages import PingResponse, ToBorrower


def message(name: bytes, number: int) -> PingResponse:
    return PingResponse(name, 1, number)


@pytest.fixture
async def office() -> AsyncIterator[BorrowerMailboxes]:
    made = BorrowerMailboxes()
    task = asyncio.create_task(made.run(), name="post office")
    yield made
    task.cancel()
    await asyncio.wait([task])


async def test_messages_come_later_and_in_order(office: BorrowerMailboxes) -> None:
    inbox: list[ToBorrower] = []
    done = asyncio.Event()

    def receive(received: ToBorrower) -> None:
        inbox.append(received)
        if len(inbox) == 1_000:
            done.set()

    office.attach(b"ann", receive)
    for number in range(1_000):
        office.put(message(b"ann", number))
    assert inbox == []
    async with asyncio.timeout(5):
        await done.wait()
    assert inbox == [message(b"ann", number) for number in range(1_000)]


async def test_a_message_without_a_receiver_is_lost(office: BorrowerMailboxes) -> None:
    office.put(message(b"nobody", 1))
    inbox: asyncio.Queue[ToBorrower] = asyncio.Queue()
    office.attach(b"nobody", inbox.put_nowait)
    office.put(message(b"nobody", 2))
    async with asyncio.timeout(5):
        assert await inbox.get() == message(b"nobody", 2)


async def test_what_waits_for_a_receiver_that_left_is_lost(office: BorrowerMailboxes) -> None:
    gone: list[ToBorrower] = []
    detach = office.attach(b"ann", gone.append)
    inbox: asyncio.Queue[ToBorrower] = asyncio.Queue()
    office.attach(b"bob", inbox.put_nowait)
    office.put(message(b"ann", 1))
    detach()
    office.put(message(b"bob", 2))
    async with asyncio.timeout(5):
        await inbox.get()
    assert gone == []


async def test_a_full_mailbox_loses_its_own_messages_only(
    office: BorrowerMailboxes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(borrower_mailboxes, "BORROWER_MAILBOX_MAX", 2)
    counts = {b"ann": 0, b"bob": 0}
    done = asyncio.Event()

    def receive(received: ToBorrower) -> None:
        counts[received.borrower_id] += 1
        if received.borrower_id == b"bob":
            done.set()

    office.attach(b"ann", receive)
    office.attach(b"bob", receive)
    for number in range(5):
        office.put(message(b"ann", number))
    office.put(message(b"bob", 9))
    async with asyncio.timeout(5):
        await done.wait()
    assert counts == {b"ann": 2, b"bob": 1}
    assert office.lost == 3
