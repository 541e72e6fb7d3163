"""One group of a chaos run: its members, who come and go, and their output.

Invariant: every member has a name of its own, even if it has the client id of a dead one; a member
that ends unexpectedly is noticed.
"""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from dss_client import Client
from dss_sim.groups.violation import Violation
from support.chaos_rules import Said, check_rests, check_turns
from support.member_process import MemberProcess, member
from support.recorded_run import Place, Recorded, Standing

PROGRAM = Path(__file__).parents[1] / "scenarios" / "programs" / "chaos_member.py"
RUN = "run"


class ChaosMember:
    """A process that belongs to the group."""

    def __init__(self, name: str, client_id: str, process: MemberProcess) -> None:
        self.name = name
        self.client_id = client_id
        self.process = process
        self.frozen = False


class ChaosGroup:
    """Everything known about one group."""

    def __init__(
        self, name: str, way: str, protocol: str, *, endpoint: str, stack: AsyncExitStack
    ) -> None:
        self.name = name
        self.way = way
        self.protocol = protocol
        self.filter = f"$share/{name}/+/#"
        self.living: list[ChaosMember] = []
        self.everyone: list[ChaosMember] = []
        self.recorded = Recorded(name, by_key=way == RUN)
        self._endpoint = endpoint
        self._stack = stack

    async def create(self, client: Client) -> None:
        """Before its members come."""
        await client.groups.create(self.filter, start="earliest", protocol=self.protocol)
        # From now on any record may come twice.
        self.recorded.disturb("chaos")

    async def join(self, seed: int, client_id: str | None = None) -> ChaosMember:
        """Start a member, under a client id of its own or under that of a dead one."""
        name = f"{self.name}-{len(self.everyone)}"
        said = (self._endpoint, client_id or name, self.filter, self.way, f"{seed}-{name}")
        process = await self._stack.enter_async_context(member(PROGRAM, *said))
        joined = ChaosMember(name, client_id or name, process)
        self.living.append(joined)
        self.everyone.append(joined)
        return joined

    def awake(self) -> list[ChaosMember]:
        """The members that are not frozen."""
        return [each for each in self.living if not each.frozen]

    async def kill(self, victim: ChaosMember) -> None:
        """SIGKILL it, whatever it is doing."""
        self.living.remove(victim)
        await victim.process.kill()

    async def let_leave(self, leaver: ChaosMember) -> None:
        """Let it leave in order; it is no longer a member of the run.

        Raises:
            Violation: it did not end in order.
        """
        if leaver in self.living:
            self.living.remove(leaver)
        leaver.process.tell("leave")
        try:
            exit_code = await leaver.process.ended()
        except TimeoutError:
            raise Violation("end", f"{leaver.name} does not end") from None
        last = leaver.process.lines[-1:]
        if exit_code != 0 or not last or last[0]["event"] != "left":
            raise Violation("end", f"{leaver.name} ended with {exit_code}: {last}")

    async def all_leave(self) -> None:
        """Let all present members leave.

        Raises:
            Violation: a member does not end, or not in order.
        """
        for each in [*self.living]:
            await self.let_leave(each)

    def check_living(self) -> None:
        """Check that no member has ended by itself.

        Raises:
            Violation: somebody has.
        """
        for each in self.living:
            exit_code = each.process.process.returncode
            if exit_code is not None:
                raise Violation("end", f"{each.name} ended by itself with {exit_code}")

    def judge(self, path: Path, log: dict[Place, bytes], standings: Sequence[Standing]) -> None:
        """Judge the group by what all members observed.

        Raises:
            Violation: a rule does not hold.
        """
        for name, lines in self.said.items():
            self.recorded.heard(name, lines)
        self.recorded.judge(path, log, standings)
        check_rests(self.said)
        if self.way == RUN:
            check_turns(self.said)

    @property
    def said(self) -> Said:
        """All lines of each member."""
        return {each.name: each.process.lines for each in self.everyone}
