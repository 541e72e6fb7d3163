"""The pings of one call: each answer is a sign of life, and ends what the client doubts.

Invariant: each waiter is woken when its answer has come, or when the call is lost.
"""

import asyncio
from collections.abc import Callable, Iterator
from time import monotonic
from typing import NoReturn

from dss_api.v1 import sessions_pb2 as wire
from dss_client._connection import ConnectionLostError
from dss_client._doubt import Doubt
from dss_client.limits import PING_OF_LEASE, PINGS_UNANSWERED_MAX
from dss_core.errors import OutcomeUnknown


class Pings:
    """Tokens are drawn from those of the call."""

    def __init__(
        self,
        doubt: Doubt,
        lease_s: float,
        tokens: Iterator[int],
        send: Callable[[wire.SessionUp], None],
    ) -> None:
        self._doubt = doubt
        self._interval_s = PING_OF_LEASE * lease_s
        self._tokens = tokens
        self._send = send
        self._asked: dict[int, tuple[float, asyncio.Future[None]]] = {}
        """By token: when the ping was sent, and the waiters for the answer."""

    def ask(self) -> "asyncio.Future[None]":
        """Send a ping; the future is done when it is answered."""
        token = next(self._tokens)
        answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._asked[token] = monotonic(), answered
        self._send(wire.SessionUp(ping=wire.Ping(token=token)))
        return answered

    def ask_again(self) -> None:
        """Send a ping, unless one is unanswered."""
        if not self._asked:
            self.ask()

    def answered(self, token: int) -> None:
        """A pong came."""
        asked = self._asked.pop(token, None)
        if asked is not None:
            asked_at, answer = asked
            self._doubt.answered(asked_at)
            _tell(answer)

    def end(self) -> None:
        """The call is lost: wake the waiters, which then find that nothing goes on."""
        for _, answer in self._asked.values():
            _tell(answer)

    async def go_on(self) -> NoReturn:
        """Send pings again and again.

        Raises:
            ConnectionLostError: the daemon does not answer.
        """
        unanswered = 0
        while True:
            await asyncio.sleep(self._interval_s)
            # Counted by rounds, not by the clock: after this process stood still, the answer is
            # there but was not read yet. And it may lie behind records that still come.
            is_silent = self._doubt.unheard_s() >= self._interval_s
            unanswered = unanswered + 1 if self._asked and is_silent else 0
            if unanswered > PINGS_UNANSWERED_MAX:
                raise ConnectionLostError(OutcomeUnknown())
            self.ask_again()


def _tell(answer: "asyncio.Future[None]") -> None:
    if not answer.done():
        answer.set_result(None)
