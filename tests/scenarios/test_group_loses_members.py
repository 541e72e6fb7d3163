"""A group of three processes that loses one after another, at any moment, never stands still."""

import asyncio
import random
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

import dss_client
from dss_client.testing.member_process import Handed, MemberProcess, member, until_together
from dssd.testing.revived import RevivedDaemon, revived

PROGRAM = Path(__file__).parent / "programs" / "member.py"
FILTER = "$share/g/t/#"
MEMBERS = 3
KILLS = 6
PORTION = 3_000
FRAME_RECORDS_MAX = 800
STILL_S_MAX = 10.0
"""How long the group may take for a portion; seconds above what it takes on a busy machine."""


class Rounds:
    """The group and all that its members were handed, those that are dead too."""

    def __init__(self, daemon: RevivedDaemon, seed: int) -> None:
        self.random = random.Random(seed)
        self.living: list[MemberProcess] = []
        self._daemon = daemon
        self._everyone: list[MemberProcess] = []

    async def join(self, stack: AsyncExitStack) -> None:
        """One more member."""
        name = f"member-{len(self._everyone)}"
        joining = member(PROGRAM, self._daemon.endpoint, name, FILTER)
        self.living.append(await stack.enter_async_context(joining))
        self._everyone.append(self.living[-1])

    async def kill(self, victim: MemberProcess) -> None:
        """SIGKILL."""
        self.living.remove(victim)
        await victim.kill()

    async def publish(self, first: int) -> None:
        """A portion, in frames of any size, some of them in the same moment."""
        async with (
            dss_client.connect(endpoint=self._daemon.endpoint) as client,
            client.producer("t") as producer,
        ):
            numbers = list(range(first, first + PORTION))
            while numbers:
                size = self.random.randint(1, FRAME_RECORDS_MAX)
                part, numbers = numbers[:size], numbers[size:]
                payloads = [b"%d" % number for number in part]
                await producer.send_columns(payloads=payloads, keys=payloads)
                if self.random.random() < 0.5:
                    await producer.flush()

    async def lose_one(self, stack: AsyncExitStack, kill: int) -> None:
        """A portion, somebody's death at some moment of it, and another who joins."""
        publishing = asyncio.create_task(self.publish(kill * PORTION), name="publish")
        victim = self.random.choice(self.living)
        after = len(victim.records) + self.random.randint(0, PORTION // MEMBERS)
        everything = (kill + 1) * PORTION
        await until_together(
            self.living,
            lambda: len(victim.records) >= after or self.distinct() == everything,
            STILL_S_MAX,
        )
        await self.kill(victim)
        await self.join(stack)
        await publishing
        await until_together(self.living, lambda: self.distinct() == everything, STILL_S_MAX)

    def handed(self) -> list[Handed]:
        """Every hand-out."""
        return [record for each in self._everyone for record in each.records]

    def distinct(self) -> int:
        """How many different records were handed out."""
        return len({record.place for record in self.handed()})


@pytest.mark.parametrize("seed", [1, 2])
async def test_whoever_is_killed_and_whenever_the_others_get_everything(seed: int) -> None:
    async with revived() as daemon, AsyncExitStack() as stack:
        client = await stack.enter_async_context(dss_client.connect(endpoint=daemon.endpoint))
        await client.topics.create("t", partitions=12)
        await client.groups.create(FILTER, start="earliest")
        rounds = Rounds(daemon, seed)
        for _ in range(MEMBERS):
            await rounds.join(stack)
        await rounds.living[0].told("subscribed")
        for kill in range(KILLS):
            await rounds.lose_one(stack, kill)
        assert [await each.leave() for each in rounds.living] == [0] * MEMBERS
        assert (await client.groups.describe("g")).group.lag == 0
    unmarked = Counter(record.place for record in rounds.handed() if not record.redelivered)
    assert set(unmarked.values()) == {1}
