"""Redrives that nobody reports: their runs have records that both queues name several times."""

from collections.abc import Iterator

from dss_sim.groups.history import Committed, Event, Queued
from dss_sim.groups.plan import plan_of
from dss_sim.groups.queue_plans import UNTOLD
from dss_sim.groups.run import run

SEED = 1_000_062


def untold(history: tuple[Event, ...]) -> Iterator[Queued]:
    """Entries that were made of dead letters which no report had told of."""
    applied: dict[str, int] = {}
    for event in history:
        match event:
            case Committed():
                applied[event.stream] = event.applied_end
            case Queued() if event.source.endswith(".dead"):
                if event.source_offset >= applied.get(event.source, 0):
                    yield event
            case _:
                pass


def test_dead_letters_come_back_that_no_report_told_of() -> None:
    plan = plan_of(SEED)
    assert any(each.kind == UNTOLD for each in plan.timed)
    outcome = run(plan)
    assert outcome.violation is None
    assert any(untold(outcome.history))
