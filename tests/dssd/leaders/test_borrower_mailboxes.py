import asyncio
from collections.abc import AsyncIterator

import pytest

from dssd.leaders import borrower_mailboxes
from dssd.leaders.borrower_mailboxes import BorrowerMailboxes
from dssd.machines.messages import PingResponse, ToBorrower


def message(name: bytes, number: int) -> PingResponse:
    return PingResponse(name, 1, number)


@pytest.fixture
async def mailboxes() -> AsyncIterator[BorrowerMailboxes]:
    made = BorrowerMailboxes()
    task = asyncio.create_task(made.run(), name="borrower mailboxes")
    yield made
    task.cancel()
    await asyncio.wait([task])


async def test_messages_come_later_and_in_order(mailboxes: BorrowerMailboxes) -> None:
    inbox: list[ToBorrower] = []
    done = asyncio.Event()

    def receive(received: ToBorrower) -> None:
        inbox.append(received)
        if len(inbox) == 1_000:
            done.set()

    mailboxes.attach(b"ann", receive)
    for number in range(1_000):
        mailboxes.put(message(b"ann", number))
    assert inbox == []
    async with asyncio.timeout(60):
        await done.wait()
    assert inbox == [message(b"ann", number) for number in range(1_000)]


async def test_a_message_without_a_receiver_is_lost(mailboxes: BorrowerMailboxes) -> None:
    mailboxes.put(message(b"nobody", 1))
    inbox: asyncio.Queue[ToBorrower] = asyncio.Queue()
    mailboxes.attach(b"nobody", inbox.put_nowait)
    mailboxes.put(message(b"nobody", 2))
    async with asyncio.timeout(60):
        assert await inbox.get() == message(b"nobody", 2)


async def test_what_waits_for_a_receiver_that_left_is_lost(mailboxes: BorrowerMailboxes) -> None:
    gone: list[ToBorrower] = []
    detach = mailboxes.attach(b"ann", gone.append)
    inbox: asyncio.Queue[ToBorrower] = asyncio.Queue()
    mailboxes.attach(b"bob", inbox.put_nowait)
    mailboxes.put(message(b"ann", 1))
    detach()
    mailboxes.put(message(b"bob", 2))
    async with asyncio.timeout(60):
        await inbox.get()
    assert gone == []


async def test_a_full_mailbox_loses_its_own_messages_only(
    mailboxes: BorrowerMailboxes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(borrower_mailboxes, "BORROWER_MAILBOX_MAX", 2)
    counts = {b"ann": 0, b"bob": 0}
    done = asyncio.Event()

    def receive(received: ToBorrower) -> None:
        counts[received.borrower_id] += 1
        if received.borrower_id == b"bob":
            done.set()

    mailboxes.attach(b"ann", receive)
    mailboxes.attach(b"bob", receive)
    for number in range(5):
        mailboxes.put(message(b"ann", number))
    mailboxes.put(message(b"bob", 9))
    async with asyncio.timeout(60):
        await done.wait()
    assert counts == {b"ann": 2, b"bob": 1}
    assert mailboxes.lost == 3
