"""For whom schedules and jobs act: with what these may do at that moment."""

import hashlib
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dss_core.errors import OwnerRefused
from dssd.access.access import Access, NewPrincipal
from dssd.access.permissions import permission_of
from dssd.rpc.acting import Acting
from dssd.rpc.demands import Known
from dssd.store.job_rows import JobRow
from dssd.store.memory import MemoryStore
from dssd.store.schedule_rows import ScheduleRow
from dssd.topics.catalogue import Topic
from support.told_events import SetClock

NOW_MS = 1_800_000_000_000
ADA = "token:ada"
OPERATES = permission_of("operate", ["#"], ["*"])
CONSUMES = permission_of("consume", ["orders/#"], [])
PRODUCES = permission_of("produce", ["copies/#"], [])
SCHEDULE = cast(
    "ScheduleRow", SimpleNamespace(name="s", arguments='{"topic": "orders"}', principal=ADA)
)
JOB = cast("JobRow", SimpleNamespace(name="copy", principal=ADA))


class Parts:
    """No topic and no schedule, and a job that copies orders."""

    def find(self, name: str) -> Topic | None:
        return None

    def topics_of(self, name: str) -> tuple[str, str] | None:
        return {"copy": ("orders", "copies")}.get(name)

    def dead_letters_of(self, name: str) -> str:
        return ""


@pytest.fixture
def clock() -> SetClock:
    return SetClock(NOW_MS)


@pytest.fixture
async def access(clock: SetClock) -> Access:
    return await Access.open(MemoryStore(), clock)


@pytest.fixture
def acting(access: Access) -> Acting:
    parts = cast("Any", Parts())
    return Acting(access, Known(parts, parts, parts, parts, parts))


async def test_a_schedule_runs_while_whom_it_acts_for_may_do_what_it_does(
    access: Access, acting: Acting
) -> None:
    asked = NewPrincipal(ADA, (OPERATES, CONSUMES), hashlib.sha256(b"a").digest(), NOW_MS + 1, "x")
    await access.put(asked)
    acting.check_schedule(SCHEDULE)
    await access.put(replace(asked, permissions=(OPERATES,), secret=b"", replaces=True))
    with pytest.raises(OwnerRefused, match="s acts for token:ada, who may not consume orders/#"):
        acting.check_schedule(SCHEDULE)
    await access.remove(ADA)
    with pytest.raises(OwnerRefused, match="s acts for token:ada, who may not call any longer"):
        acting.check_schedule(SCHEDULE)


async def test_a_job_is_driven_while_whom_it_acts_for_reads_its_source_and_writes_its_target(
    access: Access, acting: Acting
) -> None:
    asked = NewPrincipal(ADA, (CONSUMES, PRODUCES), hashlib.sha256(b"a").digest(), NOW_MS + 1, "x")
    await access.put(asked)
    acting.check_job(JOB)
    await access.put(replace(asked, permissions=(CONSUMES,), secret=b"", replaces=True))
    with pytest.raises(OwnerRefused, match="The job copy acts for token:ada, who may not produce"):
        acting.check_job(JOB)


async def test_who_has_expired_has_nothing_done_for_them(
    access: Access, acting: Acting, clock: SetClock
) -> None:
    secret = hashlib.sha256(b"a").digest()
    await access.put(NewPrincipal(ADA, (OPERATES, CONSUMES), secret, NOW_MS + 1, "x"))
    acting.check_schedule(SCHEDULE)
    clock.at_ms += 1
    with pytest.raises(OwnerRefused, match="who may not call any longer"):
        acting.check_schedule(SCHEDULE)


@pytest.mark.parametrize("principal", ["", "loopback", "local:ann"])
def test_who_is_on_the_daemons_machine_needs_no_row(acting: Acting, principal: str) -> None:
    made_here = SimpleNamespace(name="s", arguments="{}", principal=principal)
    acting.check_schedule(cast("ScheduleRow", made_here))
