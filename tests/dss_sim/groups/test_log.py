from dss_core.ids import StreamId
from dss_sim.groups.log import FRAMES_A_READ, SimulatedLog, cut_frames, keys_in, masked
from dssd.machines.delivery.events import ChunkRead, Read, ReadFailed

STREAM = StreamId(1, 0)


def log_of(*records: int) -> SimulatedLog:
    """A log with one stream that has frames of so many records."""
    log = SimulatedLog()
    log.create([STREAM])
    end = 0
    for count in records:
        log.enter(STREAM, end, [None] * count)
        end += count
    return log


def answer(log: SimulatedLog, offset: int, every: int = 0) -> ChunkRead | ReadFailed:
    return log.read(Read(1, STREAM, offset, 1 << 20), every)


def read(log: SimulatedLog, offset: int, every: int = 0) -> ChunkRead:
    chunk = answer(log, offset, every)
    assert isinstance(chunk, ChunkRead)
    return chunk


def test_a_read_gives_whole_frames_and_masks_what_is_not_wanted() -> None:
    log = log_of(3, 2, 4, 1)
    chunk = read(log, 4, every=3)
    assert (chunk.base, chunk.next, chunk.records) == (3, 10, 6)
    assert chunk.mask == ((3, 4), (6, 7))
    assert list(cut_frames(chunk.frames).base) == [3, 5, 9]
    assert (read(log, 10).records, read(log, 10).next) == (0, 10)


def test_a_frame_of_which_the_filter_wants_nothing_is_passed_over() -> None:
    chunk = read(log_of(1, 3), 0, every=4)
    assert (chunk.base, chunk.next, chunk.records) == (1, 4, 3)


def test_a_read_gives_no_more_frames_than_one_may() -> None:
    chunk = read(log_of(*[1] * (FRAMES_A_READ + 2)), 0)
    assert (chunk.records, chunk.next) == (FRAMES_A_READ, FRAMES_A_READ)


def test_a_read_ends_before_a_damaged_frame_and_the_next_one_passes_over_it() -> None:
    log = log_of(2, 2, 2)
    log.damage(STREAM, [(2, 4)])
    assert (read(log, 0).records, read(log, 0).next) == (2, 2)
    chunk = read(log, 2)
    assert (chunk.base, chunk.next, chunk.records) == (4, 6, 2)
    log.damage(STREAM, [(4, 6)])
    assert (read(log, 3).frames, read(log, 3).next) == (b"", 6)


def test_a_read_ends_before_a_bad_sector_and_one_that_begins_there_fails() -> None:
    log = log_of(2, 2, 2)
    log.lose_sectors(STREAM, [(2, 4)])
    assert (read(log, 0).records, read(log, 0).next) == (2, 2)
    assert answer(log, 2) == answer(log, 3) == ReadFailed(1)
    assert (read(log, 4).base, read(log, 4).next) == (4, 6)


def test_a_read_passes_over_lost_offsets_and_damage_beside_them() -> None:
    log = log_of(2, 2, 2)
    log.damage(STREAM, [(2, 4)])
    log.lose(STREAM, 4, 20)
    log.enter(STREAM, 20, [None])
    assert log.bounds(STREAM).end == 21
    chunk = read(log, 2)
    assert (chunk.base, chunk.next, chunk.records) == (20, 21, 1)


def test_offsets_that_bad_bytes_may_have_held_are_passed_over() -> None:
    log = log_of(2)
    log.claim(STREAM, 9)
    assert (read(log, 2).frames, read(log, 2).next) == (b"", 9)


def test_what_is_read_has_the_keys_that_were_appended() -> None:
    log = log_of()
    log.enter(STREAM, 0, ["a", None, ""])
    log.enter(STREAM, 3, ["b"])
    log.lose(STREAM, 4, 9)
    log.enter(STREAM, 9, [None, "z"])
    frames = read(log, 0).frames + read(log, 9).frames
    assert keys_in(frames) == {0: "a", 1: None, 2: "", 3: "b", 9: None, 10: "z"}


def test_a_filter_masks_each_offset_that_it_rejects() -> None:
    assert masked(0, 0, 9) == ()
    assert masked(3, 1, 7) == ((3, 4), (6, 7))


def test_who_watches_a_stream_hears_of_growth_until_it_stops() -> None:
    log = log_of()
    heard: list[int] = []
    stop = log.watch(STREAM, lambda: heard.append(log.bounds(STREAM).end))
    log.enter(STREAM, 0, [None] * 2)
    stop()
    log.enter(STREAM, 2, [None] * 2)
    assert heard == [2]
