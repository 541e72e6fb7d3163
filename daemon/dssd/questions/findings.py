"""`Daemon.Findings`: what is wrong with the daemon, or with a topic or a session of it.

Invariant: it gathers what rules go by (`finding_rules`), and changes nothing.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeVar

from dss_core.answers import DaemonStatus
from dss_core.errors import DssError, StreamNotFound
from dss_core.filters import TopicFilter
from dss_core.ids import StreamId
from dssd.events.events import Events
from dssd.events.limits import ERRORS_SHOWN_MS
from dssd.events.model import KeptEvent, Severity
from dssd.events.selection import EventSelection
from dssd.jobs.held_job import JobView
from dssd.log.port import Log
from dssd.loop_yield import LoopTurn
from dssd.operations.operations import Operations
from dssd.questions.finding_rules import OF_SESSION, OF_TOPIC, Facts, KeptTopic, findings_of
from dssd.questions.questions import Questions
from dssd.questions.verdicts import Verdict
from dssd.schedules.views import ScheduleView
from dssd.sessions.limits import SESSIONS_MAX
from dssd.sessions.sessions import Sessions
from dssd.topics.catalogue import Catalogue

FINDING_EVENTS_MAX = 200
"""Warnings and errors of a day that findings are made of, the newest."""


Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class FindingQuestions:
    """Answers them."""

    questions: Questions
    catalogue: Catalogue
    log: Log
    sessions: Sessions
    events: Events
    operations: Operations
    schedules: Callable[[], Sequence[ScheduleView]]
    jobs: Callable[[], Sequence[JobView]]
    daemon: Callable[[], Awaitable[DaemonStatus]]

    async def ask(self, topic: str = "", client_id: str = "") -> list[Verdict]:
        """The findings, in the order of the rules.

        Raises:
            TopicNotFound: there is no such topic.
        """
        if topic:
            return findings_of(await self._of_topic(topic), OF_TOPIC)
        daemon = await self.daemon()
        if client_id:
            stuck = await self.questions.stuck.ask()
            held = [each for each in stuck if each.client_id == client_id]
            return findings_of(Facts(daemon, stuck=held), OF_SESSION)
        return findings_of(await self._of_all(daemon))

    async def _of_all(self, daemon: DaemonStatus) -> Facts:
        """Each question is asked by itself, so the failure of one does not hide the others."""
        failed: dict[str, DssError] = {}

        async def asked(what: str, question: Awaitable[Sequence[Answer]]) -> Sequence[Answer]:
            try:
                return await question
            except DssError as failure:
                failed[what] = failure
                return ()

        return Facts(
            daemon,
            groups=await asked("groups", self.questions.overviews.all()),
            stuck=await asked("what does not move", self.questions.stuck.ask()),
            events=await asked("events", self._bad_events(daemon)),
            topics=await asked("topics", self._kept()),
            sessions=await asked("sessions", self.sessions.listed("", SESSIONS_MAX)),
            operations=self.operations.unended(),
            schedules=self.schedules(),
            jobs=self.jobs(),
            failed=failed,
        )

    async def _of_topic(self, name: str) -> Facts:
        """What concerns a topic: its readers as a whole, and what does not move in its streams."""
        patterns = self.catalogue.get(name).patterns
        daemon, prefix = await self.daemon(), f"{name}/"
        readers = [
            each
            for each in await self.questions.overviews.all()
            if any(TopicFilter.parse(each.group.filter).overlaps(own) for own in patterns)
        ]
        names = {each.group.full_name for each in readers}
        losses = tuple(each for each in daemon.unread_losses if each.topic == name)
        return Facts(
            replace(daemon, unread_losses=losses, quarantined=(), errors_in_a_day=0),
            groups=readers,
            stuck=[
                each
                for each in await self.questions.stuck.ask()
                if each.stream.startswith(prefix) or (not each.stream and each.group in names)
            ],
            events=await self._bad_events(daemon, prefix),
        )

    async def _bad_events(self, daemon: DaemonStatus, about: str = "") -> Sequence[KeptEvent]:
        since_ms = daemon.now_us // 1_000 - ERRORS_SHOWN_MS
        wanted = EventSelection(since_ms, Severity.WARNING, about)
        return await self.events.last_of(wanted, self.events.last_number, FINDING_EVENTS_MAX)

    async def _kept(self) -> list[KeptTopic]:
        topics = self.catalogue.topics()
        return [KeptTopic(each, await bytes_of(self.log, each.streams())) for each in topics]


async def bytes_of(log: Log, streams: Iterable[StreamId]) -> int:
    """How much of the log these streams have."""
    size_bytes = 0
    turn = LoopTurn()
    for stream in streams:
        await turn.give_way()
        with suppress(StreamNotFound):  # its topic was removed meanwhile
            size_bytes += log.bounds(stream).bytes
    return size_bytes
