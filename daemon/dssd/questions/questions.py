"""All questions of one daemon, as its servicers ask them.

Invariant: it holds the parts that questions ask, and nothing of their answers.
"""

import asyncio
from collections.abc import Callable
from typing import NoReturn

from dssd.clock import Clock
from dssd.events.limits import ERRORS_SHOWN_MS
from dssd.leaders.groups import Groups
from dssd.leaders.registry import Registry
from dssd.log.port import Log
from dssd.operations.operations import Operations
from dssd.questions.limits import SAMPLE_EVERY_S
from dssd.questions.overviews import Overviews
from dssd.questions.queues import QueueQuestions
from dssd.questions.samples import Sampler
from dssd.questions.stuck import StuckQuestions
from dssd.questions.verify import VerifyQuestions
from dssd.questions.why import WhyQuestions
from dssd.sessions.sessions import Sessions
from dssd.store.rows import GroupRow
from dssd.topics.catalogue import Catalogue


class Questions:
    """Built once; asked by many calls at a time. `run` beside them keeps samples."""

    def __init__(
        self,
        groups: Groups,
        registry: Registry,
        catalogue: Catalogue,
        log: Log,
        sessions: Sessions,
        operations: Operations,
        clock: Clock,
        error_of: Callable[[str, int], str] = lambda _subject, _since_ms: "",
    ) -> None:
        self.clock = clock
        self.queues = QueueQuestions(groups, registry, catalogue, log)
        self._error_of = error_of
        self.sampler = Sampler(groups, registry, catalogue, log, clock)
        self.why = WhyQuestions(
            groups, registry, catalogue, log, sessions, clock, operations.kind_of, self.queues
        )
        self.stuck = StuckQuestions(
            groups, registry, operations, self.sampler, self.why, self.queues, clock
        )
        parts = (groups, registry, catalogue, log, self.sampler, clock)
        self.overviews = Overviews(*parts, self.stuck.has, self.error_of)
        self.verify = VerifyQuestions(groups, registry, catalogue, log, sessions)

    def error_of(self, group: GroupRow) -> str:
        """What went wrong with a group in the last day."""
        return self._error_of(group.full_name, self.clock.wall_ms() - ERRORS_SHOWN_MS)

    async def look(self) -> None:
        """Take samples, update overviews, and note stuck groups."""
        await self.sampler.look()
        await self.stuck.look(await self.overviews.all(private=True), self.overviews.lag_in)

    async def run(self) -> NoReturn:
        """Look again and again."""
        while True:
            await self.look()
            await asyncio.sleep(SAMPLE_EVERY_S)
