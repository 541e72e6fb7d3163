"""The last request to a client about a subscription: to stop handing out, or to go on."""

from dataclasses import dataclass

from dssd.sessions.client_items import PauseSet
from dssd.subscriptions.agent import Agent


@dataclass(frozen=True, slots=True)
class PauseAsked:
    """The agent that asked, and its borrower."""

    item: PauseSet
    agent: Agent
    borrower_id: bytes
    turn: int
    """The borrower's number for the request, to be confirmed."""
