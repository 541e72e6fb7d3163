"""All questions of one daemon, as its servicers ask them.

Invariant: it holds the parts that questions ask, and nothing of their answers.
"""

import asyncio
from typing import NoReturn

from dssd.clock import Clock
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
    ) -> None:
        self.clock = clock
        self.queues = QueueQuestions(groups, registry, catalogue, log)
        self.sampler = Sampler(groups, registry, catalogue, log, clock)
        self.overviews = Overviews(groups, registry, catalogue, log, self.sampler, clock)
        self.why = WhyQuestions(
            groups, registry, catalogue, log, sessions, clock, operations.kind_of, self.queues
        )
        self.stuck = StuckQuestions(
            groups, registry, operations, self.sampler, self.why, self.queues, clock
        )
        self.verify = VerifyQuestions(groups, registry, catalogue, log, sessions)

    async def run(self) -> NoReturn:
        """Look again and again; what a list shows is kept at hand by the way."""
        while True:
            await self.sampler.look()
            await self.overviews.all()
            await asyncio.sleep(SAMPLE_EVERY_S)
