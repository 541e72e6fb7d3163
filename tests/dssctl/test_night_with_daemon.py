"""The night that `docs/delivery.md` tells, each command of it against a daemon process."""

import asyncio
import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dss_client import Client, Record, connect
from support.dssctl_call import Daemon
from support.page_blocks import Typed, blocks

PATIENCE_S = 60.0
CUSTOMERS = 6
ORDERS = 30
GROUP = "$share/billing/orders/#"
DEPLOYED = "# the consumers are deployed anew, mended"


class Consumers:
    """A member of the group, whose handler can be deployed anew."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.breaks_on = "CHF"
        """It fails for records that say so."""
        self.billed: list[tuple[str, int]] = []

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with self._client.subscribe(GROUP) as subscription:
            task = asyncio.create_task(subscription.run(self._bill, concurrency=4))
            try:
                yield
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    async def _bill(self, record: Record) -> None:
        if self.breaks_on and self.breaks_on in record.payload.decode():
            raise ValueError(f"no rate for {self.breaks_on}")
        key = record.key or b""
        self.billed.append((key.decode(), record.offset))


def script() -> list[tuple[Typed, bool]]:
    """The commands of the page, in order, and whether the consumers are mended by then."""
    found = blocks("docs/delivery.md", "", section="A night in the life")
    [mended] = [at for at, block in enumerate(found) if block.text.startswith(DEPLOYED)]
    return [(each, at >= mended) for at, block in enumerate(found) for each in block.commands()]


SAID = (
    ("check", 1, "WARNING: dead-letters: billing@orders/# 10 >= 1"),
    ("errors", 0, "ValueError: no rate for CHF"),
    ("keys", 0, "cust-4      1  orders/0/0@4"),
    ("why", 0, "4 later records of its key wait for it."),
    ("peek", 0, '"currency": "CHF"'),
    (
        "redrive",
        1,
        "2 of the 2 that came back first failed again: ValueError: no rate for CHF. So 8",
    ),
    ("wait", 0, "dead=10"),
    ("pause", 0, "pause billing@orders/#: 1 member"),
    ("redrive", 0, "due at once, at most 20 a second."),
    ("groups", 0, "billing        10     0"),
    ("undo", 0, "10 records of it still waiting go back to the dead letters."),
    ("wait", 0, "dead=10"),
    ("redrive", 0, "note: operation 15 goes on; wait for it: dssctl ops wait 15"),
    ("wait", 0, "dead<10"),
    ("ls", 0, "15  dlq.redrive  billing@orders/#  running"),
    ("cancel", 0, "note: the rest of operation 15 stops; wait: dssctl ops wait 15"),
    ("wait", 1, "error DSS1110: Operation 15, dlq.redrive, is cancelled: "),
    ("wait", 0, "dead=10"),
    ("resume", 0, "resume billing@orders/#"),
    ("redrive", 0, "redrive 10 dead letters in 1 stream"),
    ("wait", 0, "dead=0"),
    ("groups", 0, "billing    0         0     0"),
    ("check", 0, "OK: dead-letters: billing@orders/# 0"),
)
"""Of each command of the page: a word of it, its exit code, and what it says."""


def test_each_command_of_the_night_does_what_the_page_says(daemon: Daemon) -> None:
    assert daemon.dssctl("topics", "create", "orders", "--partitions", "1").returncode == 0
    create = ("groups", "create", GROUP, "--max-deliver", "2", "--backoff", "100ms", "--ordered")
    assert daemon.dssctl(*create).returncode == 0
    consumers = asyncio.run(night(daemon))
    by_customer: dict[str, list[int]] = {}
    for customer, offset in consumers.billed:
        by_customer.setdefault(customer, []).append(offset)
    assert by_customer == {
        f"cust-{each}": list(range(each, ORDERS, CUSTOMERS)) for each in range(CUSTOMERS)
    }


async def night(daemon: Daemon) -> Consumers:
    async with (
        asyncio.timeout(PATIENCE_S),
        connect(endpoint=daemon.endpoint, client_id="anna") as client,
    ):
        async with client.producer("orders") as producer:
            for number in range(ORDERS):
                customer = number % CUSTOMERS
                currency = "CHF" if customer in (1, 4) else "EUR"
                payload = f'{{"order": {number}, "currency": "{currency}"}}'.encode()
                await producer.send(payload, key=b"cust-%d" % customer)
        consumers = Consumers(client)
        async with consumers.running():
            await asyncio.to_thread(daemon.dssctl, "wait", "group/billing", "--for", "dead=10")
            expected = iter(SAID)
            for each, is_mended in script():
                if is_mended:
                    consumers.breaks_on = ""
                words = shlex.split(each.command)
                done = await asyncio.to_thread(daemon.dssctl, *words[1:])
                word, code, said = next(expected)
                assert word in words, each
                assert (done.returncode, said in (done.stdout + done.stderr).decode()) == (
                    code, True,
                ), (each, done)  # fmt: skip
            assert next(expected, None) is None
    return consumers
