"""A real daemon as the source of a dashboard."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest

import dss_client
from dss_client.changes import CreateJob, PauseGroup
from dss_client.job_values import JobInput
from dss_core.errors import GroupNotFound
from dssctl.job_logs import begin_log, log_path
from dssctl.settings import Settings
from dssctl.top.feed.live import Live, rest_s
from dssctl.top.model.answers import Answer, Question
from dssctl.top.model.picture import Picture, Told, step
from dssctl.top.model.places import Place
from support.dashboard_items import group, update

SOON_S = 60.0
GROUP = "billing@orders/#"


class Daemon(Protocol):
    endpoint: str


@dataclass
class Watched:
    """A source, and the picture of what it told."""

    live: Live
    picture: Picture

    def __post_init__(self) -> None:
        self._told = asyncio.Event()

    def tell(self, told: Told) -> None:
        self.picture = step(self.picture, told)
        self._told.set()

    async def until(self, holds: Callable[[Picture], bool]) -> Picture:
        async with asyncio.timeout(SOON_S):
            while not holds(self.picture):
                self._told.clear()
                await self._told.wait()
        return self.picture

    async def asked(self, question: Question, **place: str | int) -> Answer:
        about = Place("group", **place)  # type: ignore[arg-type]
        return await self.live.answer(about, question, self.picture)


@asynccontextmanager
async def watched(endpoint: str) -> AsyncIterator[Watched]:
    found = Watched(Live(Settings(endpoint=endpoint), private=False), Picture())
    running = asyncio.create_task(found.live.run(found.tell), name="feed")
    try:
        yield found
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def filled(endpoint: str) -> None:
    async with dss_client.connect(endpoint=endpoint) as client:
        await client.topics.create("orders", partitions=1, if_not_exists=True)
        await client.groups.create("$share/billing/orders/#", start="earliest", if_not_exists=True)
        async with client.producer("orders") as producer:
            for number in range(3):
                await producer.send(b"%d" % number, key=b"ada")


async def test_a_daemon_is_pictured_asked_and_changed(daemon: Daemon) -> None:
    await filled(daemon.endpoint)
    async with watched(daemon.endpoint) as seen:
        lagging = await seen.until(
            lambda picture: picture.complete and picture.items.groups[GROUP].lag == 3
        )
        assert lagging.items.lags[GROUP]["orders/0/0"].lag == 3
        known = await seen.until(lambda picture: bool(picture.status and picture.topics))
        assert known.status is not None
        assert known.status.state == "serving"
        assert "orders" in known.topics
        assert any(each.code == "call.done" for each in known.events)

        stands = await seen.until(lambda picture: bool(picture.stuck))
        assert [(each.group, each.reason.code) for each in stands.stuck] == [(GROUP, "no-members")]

        out = await seen.asked("out", group=GROUP)
        assert [(each.stream, each.waiting) for each in out.sums] == [("orders/0/0", 3)]
        assert [each.offset for each in out.standings] == [0]
        page = await seen.asked("stream", group=GROUP, stream="orders/0/0")
        assert [each.payload for each in page.records] == [b"0", b"1", b"2"]
        assert page.standings[0].reason.code == "no-members"
        one = await seen.asked("record", group=GROUP, stream="orders/0/0", offset=1)
        assert [each.payload for each in one.records] == [b"1"]
        topic = await seen.asked("topic", name="orders")
        assert topic.topic is not None
        assert topic.topic.storage_topics[0].streams[0].end == 3
        gone = await seen.asked("topic", name="nothing")
        assert "nothing" in gone.failure

        plan = await seen.live.plan(PauseGroup(GROUP))
        operation = await seen.live.apply(plan, reason="a test", operation_id="once")
        paused = await seen.until(lambda picture: picture.items.groups[GROUP].paused)
        assert paused.items.operations[str(operation.number)].reason == "a test"
        with pytest.raises(GroupNotFound):
            await seen.live.plan(PauseGroup("nobody"))


async def test_of_a_job_what_is_new_is_learned(
    daemon: Daemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    await filled(daemon.endpoint)
    async with (
        dss_client.connect(endpoint=daemon.endpoint) as client,
        watched(daemon.endpoint) as seen,
    ):
        inputs = tuple(JobInput(f"part {n}") for n in range(3))
        change = CreateJob("in-parts", "backfill", target="orders", inputs=inputs)
        await client.operations.apply(await client.operations.plan(change))
        await seen.until(lambda picture: "in-parts" in picture.items.jobs)
        asked = [await seen.asked("job", name="in-parts")]
        assert asked[0].log == ()
        begin_log(log_path("in-parts"), await client.jobs.get("in-parts"))
        log_path("in-parts").write_text("it begins\n")
        async with client.jobs.drive("in-parts", driver="a test") as lease:
            for number in range(3):
                await lease.commit(number)
                asked.append(await seen.asked("job", name="in-parts"))
        published = [[each.result is not None for each in answer.chunks] for answer in asked]
        assert published == [[number < done for number in range(3)] for done in range(4)]
        assert [each.text for each in asked[-1].log if each.by == "driver"] == ["it begins"]
        ended = await seen.until(lambda picture: picture.items.jobs["in-parts"].has_ended)
        assert ended.items.jobs["in-parts"].state == "done"
        gone = await seen.asked("job", name="nothing")
        assert "nothing" in gone.failure


async def test_a_page_of_records_that_retention_took_begins_with_what_is_kept(
    daemon: Daemon,
) -> None:
    await filled(daemon.endpoint)
    async with watched(daemon.endpoint) as seen:
        await seen.until(lambda picture: picture.complete)
        beyond = await seen.asked("stream", stream="orders/0/0", offset=1_000_000)
        assert beyond.records[0].offset == 0


async def test_a_daemon_that_is_not_there_is_told_as_away_and_asked_again() -> None:
    async with watched("unix:/nowhere/s") as seen:
        lost = await seen.until(lambda picture: picture.away is not None)
        assert lost.away is not None
        assert "/nowhere/s" in lost.away.reason
        ticks = lost.ticks
        later = await seen.until(lambda picture: picture.ticks > ticks)
        assert later.away is not None
        assert later.away.since_ms == lost.away.since_ms


def test_a_feed_rests_the_longer_the_more_was_told_and_between_the_pieces_of_it() -> None:
    few, many = update(group("a")).update, update(*(group(str(n)) for n in range(1_000))).update
    assert 0 < rest_s(few) < rest_s(many)
    assert 0 < rest_s(update(group("a"), complete=False).update) < rest_s(few)
