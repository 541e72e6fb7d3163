"""A group of three processes that loses one after another, at any moment, never stands still.

Where they leave by themselves, no record comes twice.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

import dss_client
from support.member_process import MemberProcess, member, until_together
from support.proof_share import share
from support.recorded_run import SYNC_EVERY, Recorded
from support.revived_daemon import RevivedDaemon, revived
from support.trial_verdict import read

pytestmark = pytest.mark.slow("several lives of members")


PROGRAM = Path(__file__).parent / "programs" / "member.py"
FILTER = "$share/g/t/#"
PARTITIONS = 12
MEMBERS = 3
LOSSES = share(3, 6)
PORTION = share(800, 3_000)
FRAME_RECORDS_MAX = 800
LATE_S = 0.1
"""So long after its hand-out a record is acknowledged, so that the dead have left some."""
PROTOCOLS = pytest.mark.parametrize("protocol", share(["lease"], ["borrow", "lease"]))
STILL_S_MAX = 60.0
"""How long the group may take for a portion: more than it takes on any machine."""


Lose = Callable[[MemberProcess], Awaitable[None]]


class Rounds:
    """The group and all that its members were handed, those that are dead too."""

    def __init__(self, daemon: RevivedDaemon, seed: int) -> None:
        self.random = random.Random(seed)
        self.living: list[MemberProcess] = []
        self.recorded = Recorded("g")
        self.recorded.declare(f"t/0/{partition}" for partition in range(PARTITIONS))
        self._daemon = daemon
        self._everyone: list[MemberProcess] = []

    async def join(self, stack: AsyncExitStack) -> None:
        """One more member."""
        name = f"member-{len(self._everyone)}"
        habits = ("--sync", f"{SYNC_EVERY}", "--late", f"{LATE_S}")
        joining = member(PROGRAM, self._daemon.endpoint, name, FILTER, *habits)
        self.living.append(await stack.enter_async_context(joining))
        self._everyone.append(self.living[-1])

    async def kill(self, victim: MemberProcess) -> None:
        """SIGKILL."""
        self.recorded.disturb("a member is killed")
        self.living.remove(victim)
        await victim.kill()

    async def let_leave(self, leaver: MemberProcess) -> None:
        """As it should be done."""
        self.living.remove(leaver)
        assert await leaver.leave() == 0

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
                self.recorded.send(*payloads)
                for ack in await producer.send_columns(payloads=payloads, keys=payloads):
                    self.recorded.stored(ack)
                if self.random.random() < 0.5:
                    await producer.flush()

    async def lose_one(self, stack: AsyncExitStack, turn: int, lose: Lose) -> None:
        """A portion, somebody's end at some moment of it, and another who joins."""
        publishing = asyncio.create_task(self.publish(turn * PORTION), name="publish")
        victim = self.random.choice(self.living)
        after = len(victim.records) + self.random.randint(0, PORTION // MEMBERS)
        everything = (turn + 1) * PORTION
        await until_together(
            self.living,
            lambda: len(victim.records) >= after or self.has_all(everything),
            STILL_S_MAX,
        )
        await lose(victim)
        await self.join(stack)
        await publishing
        await until_together(self.living, lambda: self.has_all(everything), STILL_S_MAX)

    def has_all(self, count: int) -> bool:
        """Whether so many different records were handed out."""
        # To put the places together takes long, and says something only when there are enough.
        return (
            sum(len(each.records) for each in self._everyone) >= count
            and len({record.place for each in self._everyone for record in each.records}) == count
        )

    async def judge(self, client: dss_client.Client, path: Path) -> None:
        """What all of them saw must fit together."""
        for at, each in enumerate(self._everyone):
            self.recorded.heard(f"member-{at}", each.lines)
        self.recorded.judge(path, await read(client, "t"), await client.grants.list("g"))


async def lose_members(
    seed: int, protocol: str, path: Path, *, lose: Callable[[Rounds], Lose]
) -> None:
    """One member in each round, and what all of them saw is judged."""
    async with revived() as daemon, AsyncExitStack() as stack:
        client = await stack.enter_async_context(dss_client.connect(endpoint=daemon.endpoint))
        await client.topics.create("t", partitions=PARTITIONS)
        await client.groups.create(FILTER, start="earliest", protocol=protocol)
        rounds = Rounds(daemon, seed)
        for _ in range(MEMBERS):
            await rounds.join(stack)
        await rounds.living[0].told("subscribed")
        for turn in range(LOSSES):
            await rounds.lose_one(stack, turn, lose(rounds))
        assert [await each.leave() for each in rounds.living] == [0] * MEMBERS
        await rounds.judge(client, path)


@PROTOCOLS
@pytest.mark.parametrize("seed", share([1], [1, 2, 3, 4]))
async def test_whoever_is_killed_and_whenever_the_others_get_everything(
    seed: int, protocol: str, tmp_path: Path
) -> None:
    path = tmp_path / "history.jsonl"
    await lose_members(seed, protocol, path, lose=lambda rounds: rounds.kill)


@PROTOCOLS
async def test_where_members_come_and_leave_every_record_is_handed_out_exactly_once(
    protocol: str, tmp_path: Path
) -> None:
    path = tmp_path / "history.jsonl"
    await lose_members(3, protocol, path, lose=lambda rounds: rounds.let_leave)
