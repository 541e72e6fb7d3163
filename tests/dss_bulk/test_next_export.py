"""What is exported next: what is new, once; what was deleted before is named and noted."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dss_bulk.export import MANIFEST, ExportRun, Lost, Noted, state_of
from dss_bulk.export_work import ExportParams
from dss_bulk.next_export import NextExport, next_export
from dss_client import Client
from dss_client.changes import CreateJob
from dss_core.errors import ExportBroken
from dssd.topics.catalogue import Topic
from support.log_in_process import Shelf
from support.served_log import client_of

CHANGE = CreateJob("lake", "export", source="a")


@pytest.fixture
async def topic(shelf: Shelf) -> Topic:
    """Of two partitions, the first with four records."""
    topic = await shelf.topic("a", 2)
    for _ in range(4):
        await shelf.store(topic, b"0")
    return topic


@pytest.fixture
async def client(shelf: Shelf) -> AsyncIterator[Client]:
    async with client_of(shelf) as connected:
        yield connected


def ranges(found: NextExport) -> list[tuple[str, int, int]]:
    assert found.change is not None
    return [(each.stream, each.start, each.end) for each in found.change.ranges]


def export(found: NextExport, topic: Topic, folder: Path, job: str = "lake.1") -> None:
    """What the last chunk of the job does."""
    assert found.change is not None
    params = ExportParams.from_json(found.change.params)
    ExportRun(folder, "a", topic.topic_id, job).publish(params.noted)


async def test_a_first_export_takes_all_that_is_kept_and_misses_nothing(
    shelf: Shelf, topic: Topic, client: Client, tmp_path: Path
) -> None:
    await shelf.log.trim(topic.streams()[0], 2)
    found = await next_export(client, CHANGE, tmp_path / "lake")
    assert (ranges(found), found.told) == ([("a/0/0", 2, 4)], ())


async def test_what_was_deleted_between_two_exports_is_told_and_noted_once(
    shelf: Shelf, topic: Topic, client: Client, tmp_path: Path
) -> None:
    folder = tmp_path / "lake"
    export(await next_export(client, CHANGE, folder), topic, folder)
    for partition in (0, 1):
        for _ in range(4):
            await shelf.store(topic, b"1", partition=partition)
    await shelf.log.trim(topic.streams()[0], 6)
    await shelf.log.trim(topic.streams()[1], 4)

    found = await next_export(client, CHANGE, folder)

    assert ranges(found) == [("a/0/0", 6, 8)]
    assert [each.message for each in found.told] == [
        f"a/0/0 from offset 4 to 6 was deleted before {folder} had it.",
        f"a/0/1 from offset 0 to 4 was deleted before {folder} had it.",
    ]
    export(found, topic, folder, "lake.2")
    state = state_of(folder)
    assert state is not None
    assert state.lost == [Lost("a/0/0", 4, 6), Lost("a/0/1", 0, 4)]
    again = await next_export(client, CHANGE, folder)
    assert (again.change, again.told) == (None, ())


async def test_what_lies_before_a_beginning_that_was_asked_for_is_not_missed(
    shelf: Shelf, topic: Topic, client: Client, tmp_path: Path
) -> None:
    folder = tmp_path / "lake"
    export(await next_export(client, CHANGE, folder), topic, folder)
    for _ in range(4):
        await shelf.store(topic, b"1")
    await shelf.log.trim(topic.streams()[0], 6)
    since = CreateJob("lake", "export", source="a", start_us=1)
    assert (await next_export(client, since, folder)).told == ()


async def test_an_export_moves_no_end_back_and_none_over_records_that_it_leaves_out(
    shelf: Shelf, topic: Topic, client: Client, tmp_path: Path
) -> None:
    folder = tmp_path / "lake"
    ahead = {"a/0/0": 4, "a/0/1": 0}
    ExportRun(folder, "a", topic.topic_id, "lake.1").publish(Noted(ahead))
    await shelf.store(topic, b"1", partition=1)
    second_us = (await shelf.store(topic, b"2")).append_time_us
    third_us = (await shelf.store(topic, b"3", partition=1)).append_time_us
    assert second_us < third_us
    until = CreateJob("lake", "export", source="a", end_us=second_us)
    first = (await next_export(client, until, folder)).change
    assert first is not None
    assert ExportParams.from_json(first.params).noted.ends == {"a/0/0": 4, "a/0/1": 1}
    since = CreateJob("lake", "export", source="a", start_us=third_us)
    second = (await next_export(client, since, folder)).change
    assert second is not None
    assert ExportParams.from_json(second.params).noted.ends == {"a/0/1": 2}


async def test_a_folder_that_has_more_than_the_log_is_refused(
    shelf: Shelf, topic: Topic, client: Client, tmp_path: Path
) -> None:
    folder = tmp_path / "lake"
    ExportRun(folder, "a", topic.topic_id, "lake.1").publish(Noted({"a/0/0": 5}))
    with pytest.raises(ExportBroken, match="a/0/0 up to offset 5, the log only up to 4"):
        await next_export(client, CHANGE, folder)


async def test_a_folder_of_an_older_version_misses_nothing(tmp_path: Path) -> None:
    (tmp_path / "_dss_export.json").write_text(
        '{"format": 1, "topic": "a", "topic_id": 1, "runs": 1, "ends": {"a/0/0": 4}, "job": "x.1"}'
    )
    state = state_of(tmp_path)
    assert state is not None
    assert (state.ends, state.lost) == ({"a/0/0": 4}, [])


async def grown(shelf: Shelf, partitions: int) -> Topic:
    """The topic once it was switched to another storage topic."""
    topic = shelf.catalogue.get("a")
    ordinal = topic.producing.ordinal + 1
    await shelf.catalogue.add_storage_topic(topic.topic_id, ordinal, partitions)
    await shelf.catalogue.switch(topic.topic_id, ordinal)
    return shelf.catalogue.get("a")


async def collected(shelf: Shelf, *ordinals: int) -> None:
    """Storage topics go, with their records."""
    await shelf.catalogue.drop_storage_topics(shelf.catalogue.get("a").topic_id, ordinals)


async def test_an_export_of_a_grown_topic_takes_each_storage_topic_from_where_it_was(
    shelf: Shelf, topic: Topic, client: Client, tmp_path: Path
) -> None:
    folder = tmp_path / "lake"
    export(await next_export(client, CHANGE, folder), topic, folder)
    await shelf.store(topic, b"1", partition=1)
    await shelf.store(await grown(shelf, 4), b"2", partition=3)
    await grown(shelf, 2)

    found = await next_export(client, CHANGE, folder)

    assert ranges(found) == [("a/0/1", 0, 1), ("a/1/3", 0, 1)]
    export(found, topic, folder, "lake.2")
    state = state_of(folder)
    assert state is not None
    assert state.storage_topics == {0: (4, 1), 1: (0, 0, 0, 1), 2: None}
    await collected(shelf, 0, 1)
    after = await next_export(client, CHANGE, folder)
    assert (after.change, after.told) == (None, ())


async def test_a_storage_topic_that_was_sealed_behind_the_last_export_is_known_to_be_there_whole(
    shelf: Shelf, topic: Topic, client: Client, tmp_path: Path
) -> None:
    folder = tmp_path / "lake"
    export(await next_export(client, CHANGE, folder), topic, folder)
    await grown(shelf, 4)
    nothing_new = await next_export(client, CHANGE, folder)
    assert nothing_new.change is None
    nothing_new.run.note(nothing_new.noted)
    await collected(shelf, 0)
    assert (await next_export(client, CHANGE, folder)).told == ()


async def test_records_of_a_storage_topic_that_went_before_an_export_are_told_and_noted_once(
    shelf: Shelf, topic: Topic, client: Client, tmp_path: Path
) -> None:
    folder = tmp_path / "lake"
    first = CreateJob("lake", "export", source="a", end_us=1)
    export(await next_export(client, CHANGE, folder), topic, folder)
    await shelf.store(topic, b"1", partition=1)
    await grown(shelf, 4)
    # It finds where the storage topic ends, and leaves what is new.
    before = await next_export(client, first, folder)
    before.run.note(before.noted)
    await collected(shelf, 0)

    found = await next_export(client, CHANGE, folder)

    assert [each.message for each in found.told] == [
        f"a/0/1 from offset 0 to 1 was deleted before {folder} had it."
    ]
    found.run.note(found.noted)
    state = state_of(folder)
    assert state is not None
    assert (state.lost, state.gone) == ([Lost("a/0/1", 0, 1)], [])
    assert (await next_export(client, CHANGE, folder)).told == ()


async def test_storage_topics_that_went_and_nobody_knows_how_far_they_came_are_told_and_noted_once(
    shelf: Shelf, topic: Topic, client: Client, tmp_path: Path
) -> None:
    folder = tmp_path / "lake"
    export(await next_export(client, CHANGE, folder), topic, folder)
    await shelf.store(await grown(shelf, 4), b"1")
    last = await grown(shelf, 2)
    await shelf.store(last, b"2")
    await collected(shelf, 0, 1)
    # Whoever says where to begin wants nothing before it; who comes next does.
    since = CreateJob("lake", "export", source="a", start_us=1)
    some = await next_export(client, since, folder)
    assert some.told == ()
    export(some, topic, folder, "lake.2")

    found = await next_export(client, CHANGE, folder)

    assert [(each.code, each.message) for each in found.told] == [
        ("DSS7018", f"a/0 was removed before {folder} certainly had all of it."),
        ("DSS7018", f"a/1 was removed before {folder} certainly had all of it."),
    ]
    found.run.note(found.noted)
    state = state_of(folder)
    assert state is not None
    assert (state.gone, state.storage_topics) == ([0, 1], {2: None})
    assert (await next_export(client, CHANGE, folder)).told == ()


async def test_a_folder_of_an_older_version_tells_of_the_storage_topics_that_it_has_streams_of(
    shelf: Shelf, topic: Topic, client: Client, tmp_path: Path
) -> None:
    folder = tmp_path / "lake"
    ExportRun(folder, "a", topic.topic_id, "lake.1").publish(Noted({"a/0/0": 4}))
    await grown(shelf, 4)
    await collected(shelf, 0)
    found = await next_export(client, CHANGE, folder)
    assert [each.code for each in found.told] == ["DSS7018"]


async def test_what_is_found_is_written_down_or_told(
    shelf: Shelf, topic: Topic, client: Client, tmp_path: Path
) -> None:
    folder = tmp_path / "lake"
    export(await next_export(client, CHANGE, folder), topic, folder)
    await grown(shelf, 4)
    found = await next_export(client, CHANGE, folder)
    (folder / f".{MANIFEST}").mkdir()
    with pytest.raises(ExportBroken, match="cannot be written"):
        found.run.note(found.noted)
