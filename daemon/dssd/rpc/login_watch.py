"""Ends the calls of principals that may no longer call.

A token is checked once for each call, and calls run for days. So this module checks the logins of
running calls and ends those of principals that were removed, changed or have expired; clients that
are still allowed reconnect. Invariant: this happens within a second.
"""

import asyncio
from typing import NoReturn

from dssd.access.access import Access
from dssd.loop_yield import LoopTurn
from dssd.rpc.calls import Calls

LOGINS_LOOK_S = 0.4
"""How often: checking 4,096 calls takes a few milliseconds, in steps."""


class LoginWatch:
    """Of the calls of one daemon's clients."""

    def __init__(self, calls: Calls, access: Access) -> None:
        self._calls = calls
        self._access = access

    async def run(self) -> NoReturn:
        """Look until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(LOGINS_LOOK_S)

    async def look(self) -> None:
        """Look at every call once."""
        turn = LoopTurn()
        for call in self._calls.open_calls():
            await turn.give_way()
            if not self._access.still_holds(call.login):
                call.disallow()
