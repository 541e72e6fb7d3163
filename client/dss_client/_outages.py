"""What becomes of a call while the daemon is away: whether it is made again.

Once a daemon has answered, calls wait for it without end; the caller bounds that. A call that may
have taken effect is repeated only if that does no harm. Invariant: a call that the daemon refused
is never repeated.
"""

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import TypeVar

from dss_client._backoff import Backoff
from dss_client._outage_log import Outage
from dss_client._ways import Ways
from dss_core.errors import DssError, OutcomeUnknown, Stopping, Unreachable

FIRST_ANSWER_S = 30.0
"""How long to wait for a daemon that went away during the very first call: a restart with a large
store takes less, and a wrong address where nothing ever answers is reported."""

LOSSES_OF_A_CALL_MAX = 8
"""How often the connection may be lost during one call: the call may be what ends the daemon."""


Answer = TypeVar("Answer")

AWAY = (Unreachable, Stopping, OutcomeUnknown)
"""The errors of a call while the daemon is away."""


class Outages:
    """The outages of one connection; if it is not `patient`, a call fails at once."""

    def __init__(self, endpoint: str, *, patient: bool, ways: Ways | None = None) -> None:
        self._endpoint = endpoint
        self._ways = ways or Ways(1)
        self._patient = patient
        self._heard = False
        self._met_s: float | None = None
        """When a peer first went away without ever having answered."""
        self._log = Outage("the client", endpoint)

    def heard(self) -> None:
        """The daemon has answered something."""
        self._heard = True
        self._ways.heard()

    def are_waited_out(self, error: DssError) -> bool:
        """Whether to try again what failed with this error."""
        if isinstance(error, Unreachable) and self._ways.is_another_left():
            return True
        if not self._patient or not isinstance(error, AWAY):
            return False
        if self._met_s is None and not isinstance(error, Unreachable):
            self._met_s = monotonic()
        # A kill cut the first call short: a daemon would be there again soon.
        met = self._met_s is not None and monotonic() - self._met_s < FIRST_ANSWER_S
        return self._heard or met

    def as_told(self, error: DssError) -> DssError:
        """The error to raise for a repeatable call: a peer that never answered counts as never
        there."""
        if self._patient and not self._heard and isinstance(error, OutcomeUnknown):
            return Unreachable(endpoint=self._endpoint)
        return error

    async def over(self, call: Callable[[], Awaitable[Answer]], *, repeats: bool) -> Answer:
        """The result of a call, repeated over outages; ``repeats``: even if it may have taken
        effect.

        Raises:
            DssError: what the daemon refuses it with, or that it was never there.
            OutcomeUnknown: it may have been done, or it ended the daemon again and again.
        """
        backoff = Backoff()
        losses = 0
        while True:
            try:
                answer = await call()
            except AWAY as error:
                losses += not error.definite
                often = losses > (LOSSES_OF_A_CALL_MAX if repeats else 0)
                if often or not self.are_waited_out(error):
                    told = self.as_told(error) if repeats else error
                    raise told from error.__cause__
                self._log.began(error)
            else:
                self._log.ended()
                return answer
            await asyncio.sleep(backoff.pause_s())
