"""A chaos run: groups with all ways to consume, producers, and faults that never stop for long.

Faults are drawn from a seed for some seconds; then everything is thawed and started, all published
records must be acknowledged within a bound, and everything that was observed is judged. Invariant:
no fault excuses a loss, an unmarked redelivery or one after a durable ack, a record out of order,
or a hand-out from a stream that another member holds.
"""

import asyncio
import json
import random
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path
from time import monotonic

import dss_client
from dss_client import Client, Producer
from dss_sim.groups.violation import Violation
from support.chaos_faults import Fault, Strike, strikes
from support.chaos_group import ChaosGroup, ChaosMember
from support.recorded_run import Place
from support.revived_daemon import RevivedDaemon, revived
from support.settled_group import until_settled
from support.trial_verdict import read

TOPICS = ("left", "right")
PARTITIONS = 3
WAYS = (("iterate", "borrow"), ("batches", "lease"), ("fetch", "borrow"), ("run", "lease"))
"""How the members of each group consume, and the protocol of the first run; the next run has the
protocols the other way round."""
MEMBERS = 2
KEYS = 40
BURST_RECORDS_MAX = 60
BURST_EVERY_S = 0.25
SETTLED_S_MAX = 120.0
"""From the last fault until everything is acknowledged: records that are delivered alone may first
rest for a minute."""
SCENARIO = "tests/scenarios/test_chaos.py"
OTHER = {"borrow": "lease", "lease": "borrow"}


class ChaosRun:
    """One run. Built by `run_chaos`."""

    def __init__(self, seed: int, daemon: RevivedDaemon, stack: AsyncExitStack) -> None:
        self.seed = seed
        self.counts: Counter[str] = Counter()
        self._daemon = daemon
        self._chance = random.Random(seed)
        self._sent = 0
        self.groups = [
            ChaosGroup(
                f"g-{way}",
                way,
                OTHER[protocol] if seed % 2 == 0 else protocol,
                endpoint=daemon.endpoint,
                stack=stack,
            )
            for way, protocol in WAYS
        ]

    async def begin(self, client: Client) -> None:
        """Topics, groups and the first members."""
        for topic in TOPICS:
            await client.topics.create(topic, partitions=PARTITIONS)
        for group in self.groups:
            group.recorded.declare(
                f"{topic}/0/{at}" for topic in TOPICS for at in range(PARTITIONS)
            )
            await group.create(client)
            for _ in range(MEMBERS):
                await group.join(self.seed)

    async def publish(self, producer: Producer, over: asyncio.Event) -> None:
        """Records of some keys, in bursts, until it is over."""
        while not over.is_set():
            payloads = [self._payload() for _ in range(self._chance.randint(1, BURST_RECORDS_MAX))]
            for group in self.groups:
                group.recorded.send(*payloads)
            coming = [
                await producer.enqueue(payload, key=payload.split()[0]) for payload in payloads
            ]
            await producer.flush()
            for payload, delivery in zip(payloads, coming, strict=True):
                ack = await delivery
                for group in self.groups:
                    group.recorded.stored(ack, payload)
            await _either(over, BURST_EVERY_S)

    def _payload(self) -> bytes:
        self._sent += 1
        return b"k%d %d" % (self._chance.randrange(KEYS), self._sent)

    async def disturb(self, seconds: float) -> None:
        """Strike until the time is over; returns when everything is thawed, started and joined."""
        until_s = monotonic() + seconds
        async with asyncio.TaskGroup() as tasks:
            for strike in strikes(self.seed, len(self.groups)):
                await asyncio.sleep(strike.after_s)
                if monotonic() > until_s:
                    break
                self.counts[strike.fault.name] += 1
                await self._strike(strike, tasks)
                for group in self.groups:
                    group.check_living()

    async def _strike(self, strike: Strike, tasks: asyncio.TaskGroup) -> None:
        group = self.groups[strike.group]
        awake = group.awake()
        struck = awake[int(strike.chance * len(awake))] if awake else None
        match strike.fault:
            case Fault.KILL:
                await self._kill(group, strike.chance)
            case Fault.KILL_DAEMON:
                await self._daemon.revive()
            case Fault.FREEZE_DAEMON:
                with self._daemon.frozen():
                    await asyncio.sleep(strike.lasts_s)
            case Fault.FREEZE if struck is not None:
                tasks.create_task(_freeze(struck, strike.lasts_s), name="freeze")
            case Fault.RETURN if struck is not None:
                struck.process.tell("again")
            case Fault.SWAP if struck is not None:
                await group.join(self.seed)
                group.living.remove(struck)
                tasks.create_task(group.let_leave(struck), name="leave")

    async def _kill(self, group: ChaosGroup, chance: float) -> None:
        """SIGKILL any process, even a frozen one; the next member may have the client id of the
        dead one."""
        victim = group.living[int(chance * len(group.living))]
        await group.kill(victim)
        await group.join(self.seed, victim.client_id if chance * 100 % 2 < 1 else None)

    async def settle(self, client: Client) -> None:
        """Wait until all groups have acknowledged everything, and let their members leave.

        Raises:
            Violation: it took too long.
        """
        for group in self.groups:
            try:
                await until_settled(client, group.name, patience_s=SETTLED_S_MAX)
            except TimeoutError:
                described = await client.groups.describe(group.name)
                raise Violation("L2", f"not acknowledged in time: {described}") from None
        for group in self.groups:
            group.check_living()
            await group.all_leave()

    def summary(self, log: dict[Place, bytes]) -> str:
        """Counts of the run."""
        handed = [
            each for group in self.groups for one in group.everyone for each in one.process.records
        ]
        again = sum(record.redelivered for record in handed)
        faults = ", ".join(f"{name.lower()} {count}" for name, count in sorted(self.counts.items()))
        members = sum(len(group.everyone) for group in self.groups)
        return (
            f"seed {self.seed}: {len(log)} records, {len(handed)} hand-outs, {again} redelivered, "
            f"{members} members; {faults}"
        )

    def keep(self, folder: Path) -> None:
        """Write the output of each member to a file."""
        for group in self.groups:
            for name, lines in group.said.items():
                text = "".join(json.dumps(line) + "\n" for line in lines)
                (folder / f"{name}.jsonl").write_text(text)


async def run_chaos(seed: int, seconds: float, folder: Path) -> str:
    """Run this many seconds of faults, settle and judge; returns the summary.

    The output of each member and the history of each group are left in the folder.

    Raises:
        Violation: a rule does not hold; its notes name the run, and where everything is kept.
    """
    async with revived() as daemon, AsyncExitStack() as stack:
        chaos = ChaosRun(seed, daemon, stack)
        try:
            log = await _live(chaos, daemon, seconds, folder)
        except BaseException as error:
            error.add_note(f"seed {seed}, {seconds} s; all that was said is in {folder}")
            error.add_note(f"again: CHAOS={seed}:{seconds:g} python -m pytest {SCENARIO}")
            error.add_note(chaos.summary({}))
            raise
        finally:
            chaos.keep(folder)
        return chaos.summary(log)


async def _live(
    chaos: ChaosRun, daemon: RevivedDaemon, seconds: float, folder: Path
) -> dict[Place, bytes]:
    over = asyncio.Event()
    async with (
        dss_client.connect(endpoint=daemon.endpoint) as client,
        AsyncExitStack() as stack,
    ):
        await chaos.begin(client)
        producers = [await stack.enter_async_context(client.producer(each)) for each in TOPICS]
        async with asyncio.TaskGroup() as tasks:
            for producer in producers:
                tasks.create_task(chaos.publish(producer, over), name="publish")
            await chaos.disturb(seconds)
            over.set()
        await chaos.settle(client)
        log = {
            place: payload
            for topic in TOPICS
            for place, payload in (await read(client, topic)).items()
        }
        for group in chaos.groups:
            standings = await client.grants.list(group.name)
            group.judge(folder / f"{group.name}.history.jsonl", log, standings)
    return log


async def _freeze(struck: ChaosMember, seconds: float) -> None:
    """SIGSTOP, and later SIGCONT, unless the process is dead by then."""
    struck.frozen = True
    struck.process.freeze()
    await asyncio.sleep(seconds)
    struck.frozen = False
    if struck.process.process.returncode is None:
        struck.process.thaw()


async def _either(over: asyncio.Event, seconds: float) -> None:
    """Wait for the end, or for this long."""
    try:
        async with asyncio.timeout(seconds):
            await over.wait()
    except TimeoutError:
        return
