from contextlib import suppress

from dss_core.ids import StreamId
from dssd.core.delivering import Read
from dssd.store.port import Absent, PreconditionFailed, Put
from dssd.store.rows import LeaderRow
from dssd.testing.simulation.chance import Chance
from dssd.testing.simulation.schedule import Host, Schedule
from dssd.testing.simulation.storage import (
    SimulatedLog,
    SimulatedStore,
    at_once,
    cut_frames,
    masked,
)

STREAM = StreamId(1, 0)
ROW = LeaderRow(1, b"boot", 1, 0)


def drain(schedule: Schedule) -> None:
    with suppress(IndexError):
        while True:
            schedule.step()


def test_of_two_commits_with_one_precondition_one_is_answered_with_the_failure() -> None:
    schedule = Schedule()
    store = SimulatedStore(schedule, Chance(1, {}))
    home = Host(schedule, "a", rate=1_000_000, offset_ms=0)
    answers: list[list[int] | PreconditionFailed] = []
    for _ in range(2):
        store.commit(home, [Put(ROW)], [Absent(LeaderRow, (1,))], answers.append)
    assert answers == []
    drain(schedule)
    assert sorted(isinstance(answer, PreconditionFailed) for answer in answers) == [False, True]


def test_what_a_dead_daemon_had_asked_for_is_there_or_not_and_nobody_is_told() -> None:
    made = 0
    for seed in range(40):
        schedule = Schedule()
        store = SimulatedStore(schedule, Chance(seed, {}))
        home = Host(schedule, "a", rate=1_000_000, offset_ms=0)
        answers: list[object] = []
        store.commit(home, [Put(ROW)], [], answers.append)
        store.crash()
        home.crash()
        drain(schedule)
        assert answers == []
        made += at_once(store.rows.read(LeaderRow, (1,))) is not None
    assert 0 < made < 40


def test_a_read_gives_whole_frames_and_masks_what_is_not_wanted() -> None:
    log = SimulatedLog()
    log.create([STREAM])
    for records in (3, 2, 4, 1):
        log.append(STREAM, records)
    chunk = log.read(Read(1, STREAM, 4, 1 << 20), every=3)
    assert (chunk.base, chunk.next, chunk.records) == (3, 10, 7)
    assert chunk.mask == ((3, 4), (6, 7), (9, 10))
    assert list(cut_frames(chunk.frames).base) == [3, 5, 9, 10]
    assert log.read(Read(1, STREAM, 10, 1 << 20), every=0).records == 0


def test_a_filter_masks_each_offset_that_it_rejects() -> None:
    assert masked(0, 0, 9) == ()
    assert masked(3, 1, 7) == ((3, 4), (6, 7))


def test_who_watches_a_stream_hears_of_growth_until_it_stops() -> None:
    log = SimulatedLog()
    log.create([STREAM])
    heard: list[int] = []
    stop = log.watch(STREAM, lambda: heard.append(log.bounds(STREAM).end))
    log.append(STREAM, 2)
    stop()
    log.append(STREAM, 2)
    assert heard == [2]
