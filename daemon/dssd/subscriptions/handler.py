"""The handler: the agents of all subscriptions of a session.

It knows which agent holds a grant, brings reports to the right borrower, and knows when the next
agent wants to be woken. Invariant: a subscription has one agent from `begin` until its agent
reports that it is over.
"""

from dssd.leaders.mailboxes import Mailboxes
from dssd.machines.messages import StreamReport
from dssd.store.rows import GroupRow
from dssd.subscriptions.agent import Agent, Delivery, Subscriber


class Handler:
    """The subscriptions of one connected session."""

    def __init__(self, subscriber: Subscriber, mailboxes: Mailboxes, delivery: Delivery) -> None:
        self._subscriber = subscriber
        self._mailboxes = mailboxes
        self._delivery = delivery
        self._agents: dict[int, Agent] = {}
        self._holders: dict[int, tuple[Agent, bytes]] = {}
        """By grant: the agent and the borrower that hold it."""

    def __len__(self) -> int:
        """How many subscriptions there are."""
        return len(self._agents)

    def agent(self, subscription: int) -> Agent | None:
        """The agent of a subscription."""
        return self._agents.get(subscription)

    def group_ids(self) -> set[int]:
        """The groups that have a borrower of it."""
        return {agent.group.group_id for agent in self._agents.values()}

    def holder(self, grant: int) -> Agent | None:
        """The agent that holds a grant."""
        held = self._holders.get(grant)
        return held[0] if held is not None else None

    def begin(
        self, subscription: int, group: GroupRow, now_ms: int, *, by_shard: bool = False
    ) -> None:
        """Start borrowing for a subscription, whose program may keep state by shard."""
        assert subscription not in self._agents, subscription
        agent = Agent(subscription, group, self._subscriber, self._mailboxes, self._delivery)
        agent.by_shard = by_shard
        self._agents[subscription] = agent
        agent.start(now_ms)

    def edited(self, group: GroupRow) -> list[int]:
        """A group was edited; returns the subscriptions to it."""
        agents = [each for each in self._agents.values() if each.group.group_id == group.group_id]
        for agent in agents:
            agent.group = group
        return [agent.subscription for agent in agents]

    def ended(self, subscription: int) -> None:
        """Forget a subscription that is over."""
        del self._agents[subscription]

    def granted(self, grant: int, agent: Agent, borrower_id: bytes) -> None:
        """A grant has this holder."""
        self._holders[grant] = (agent, borrower_id)

    def dropped(self, grant: int) -> None:
        """A grant is over."""
        self._holders.pop(grant, None)

    def report(
        self, reports: tuple[tuple[int, StreamReport], ...], now_ms: int, *, final: bool
    ) -> None:
        """Bring reports to the borrowers that hold the grants, one input each."""
        by_holder: dict[tuple[Agent, bytes], list[StreamReport]] = {}
        for grant, report in reports:
            holder = self._holders.get(grant)
            if holder is not None:
                by_holder.setdefault(holder, []).append(report)
        for (agent, borrower_id), held in by_holder.items():
            agent.report(borrower_id, tuple(held), now_ms, final=final)

    def disconnect(self, now_ms: int, silent_ms: int | None) -> None:
        """The client is gone: end every borrower."""
        for agent in list(self._agents.values()):
            agent.disconnect(now_ms, silent_ms)

    def wake_at_ms(self) -> int | None:
        """When `tick` is wanted."""
        times = (agent.wake_at_ms() for agent in self._agents.values())
        return min((at_ms for at_ms in times if at_ms is not None), default=None)

    def tick(self, now_ms: int) -> None:
        """Wake the borrowers whose time has come."""
        for agent in list(self._agents.values()):
            agent.tick(now_ms)
