"""Findings over real parts: of all, of a topic, of a session."""

import pytest

from dss_core.answers import DaemonStatus
from dss_core.errors import DiskFull, TopicNotFound
from dss_sim.played_sessions import Hall
from dssd.events.events import Events
from dssd.machines.start_point import Earliest
from dssd.operations.operations import Operations
from dssd.questions.findings import FindingQuestions
from dssd.questions.questions import Questions
from dssd.questions.verdicts import Level, Verdict
from dssd.sessions.listing import SessionView
from support.daemon_facts import DAEMON


@pytest.fixture
async def findings(hall: Hall, questions: Questions, operations: Operations) -> FindingQuestions:
    """A group of the topic orders has a record and no member; nobody reads the topic other."""
    plant = hall.plant
    (stream,) = await plant.topic("orders", 1)
    await plant.topic("other", 1)
    await plant.publish(stream, 3)
    await plant.group("$share/g/orders/#", Earliest())
    events = await Events.open(plant.store, plant.clock)

    async def daemon() -> DaemonStatus:
        return DAEMON

    parts = (questions, plant.catalogue, plant.log, hall.sessions, events, operations)
    return FindingQuestions(*parts, list, list, daemon)


def trouble(found: list[Verdict]) -> list[str]:
    return [each.code for each in found if each.level is not Level.HEALTHY]


async def test_what_concerns_a_topic_or_a_session_is_all_that_is_told_of_it(
    findings: FindingQuestions,
) -> None:
    assert trouble(await findings.ask()) == ["groups.stuck"]
    assert trouble(await findings.ask(topic="orders")) == ["groups.stuck"]
    assert trouble(await findings.ask(topic="other")) == []
    assert trouble(await findings.ask(client_id="nobody")) == []
    with pytest.raises(TopicNotFound):
        await findings.ask(topic="none")


async def test_a_question_that_fails_is_told_and_hides_no_other(
    findings: FindingQuestions, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object) -> list[SessionView]:
        raise DiskFull

    monkeypatch.setattr(findings.sessions, "listed", refuse)
    found = await findings.ask()
    assert trouble(found) == ["daemon.answers", "groups.stuck"]
    assert found[0].sentence.startswith("sessions could not be asked for: DSS3001")
