"""What retention may take and must take: the shortest case that breaks each rule."""

from pathlib import Path

from dss_core.ids import StreamId
from dss_sim.log.acts import Retain, Sending
from dss_sim.log.new_frame import id_of, new_frame
from dss_sim.log.retention_rules import (
    FileFound,
    Held,
    files_of,
    left_wrongly,
    taken_wrongly,
)
from dss_sim.log.rules import stamped_at
from dssd.log.segment.file import HEADER_BYTES, SegmentId, SegmentPaths, encode_header

FRAME_BYTES = 136
BYTES = HEADER_BYTES + FRAME_BYTES
OLD_US, YOUNG_US = 1_000, 2_000


def file(number: int, *times_us: int) -> FileFound:
    held = tuple(
        Held(0, 10 * number + at, time_us, FRAME_BYTES) for at, time_us in enumerate(times_us)
    )
    return FileFound(SegmentId(7, number), HEADER_BYTES + len(held) * FRAME_BYTES, held)


FILES = [file(1, OLD_US), file(2, OLD_US), file(3, YOUNG_US)]
TO_AGE = Retain(0, None, 0)


def by_bytes(kept: int) -> Retain:
    return Retain(0, kept, None)


def test_by_bytes_it_leaves_as_much_as_is_to_be_kept() -> None:
    assert not list(taken_wrongly(FILES, FILES[1:], by_bytes(2 * BYTES), 0))
    assert list(taken_wrongly(FILES, FILES[1:], by_bytes(2 * BYTES + 1), 0))
    assert not list(taken_wrongly(FILES, FILES, by_bytes(9 * BYTES), 0)), "less was there"


def test_a_file_without_frames_may_go_along() -> None:
    before = [FILES[0], file(2), FILES[2]]
    assert not list(taken_wrongly(before, FILES[2:], by_bytes(BYTES + HEADER_BYTES), 0))
    assert list(taken_wrongly(before, FILES[2:], by_bytes(BYTES + HEADER_BYTES + 1), 0))


def test_where_only_files_without_frames_go_there_was_less_before() -> None:
    assert not list(taken_wrongly([file(1), file(2)], [file(2)], by_bytes(9 * BYTES), 0))


def test_by_bytes_it_leaves_no_file_that_is_over() -> None:
    assert not list(left_wrongly(FILES, FILES[1:], by_bytes(BYTES + 1), 0))
    assert list(left_wrongly(FILES, FILES[1:], by_bytes(BYTES), 0))
    assert not list(left_wrongly(FILES, FILES[2:], by_bytes(0), 0)), "the last takes frames"


def test_while_a_file_is_being_made_the_one_before_it_may_stay() -> None:
    made = [*FILES, file(4)]
    assert not list(left_wrongly(FILES, made[2:], by_bytes(1), 0))
    assert not list(left_wrongly(made, made[2:], by_bytes(1), 0))


def test_by_age_it_takes_nothing_young() -> None:
    assert not list(taken_wrongly(FILES, FILES[2:], TO_AGE, YOUNG_US))
    assert list(taken_wrongly(FILES, FILES[2:], TO_AGE, OLD_US))
    mixed = [file(1, OLD_US, YOUNG_US), file(2)]
    assert list(taken_wrongly(mixed, mixed[1:], TO_AGE, YOUNG_US))


def test_what_lies_in_a_newer_file_too_did_not_go() -> None:
    copy = FileFound(SegmentId(7, 4), BYTES, FILES[2].held)
    assert not list(taken_wrongly(FILES, [copy], TO_AGE, YOUNG_US))


def test_by_age_it_leaves_no_file_all_of_which_is_old() -> None:
    assert not list(left_wrongly(FILES, FILES[2:], TO_AGE, YOUNG_US))
    assert list(left_wrongly(FILES, FILES[1:], TO_AGE, YOUNG_US))
    mixed = [file(1, OLD_US, YOUNG_US)]
    assert not list(left_wrongly(mixed, mixed, TO_AGE, YOUNG_US))


def test_files_are_read_as_they_lie(tmp_path: Path) -> None:
    sending = Sending(0, 0, producer=0, records=2, length=9)
    sent = new_frame(0, StreamId(7, 2), 0, sending, (b"a", None), id_of(0, OLD_US))
    content = stamped_at(sent, 6, OLD_US)
    for number in (2, 1):
        path = SegmentPaths(tmp_path).segment(SegmentId(7, number))
        path.write_bytes(encode_header(SegmentId(7, number), 1) + content * number + b"torn")
    SegmentPaths(tmp_path).segment(SegmentId(8, 3)).write_bytes(b"")
    held = Held(2, 6, OLD_US, len(content))
    whole = HEADER_BYTES + len(content)
    first, second = files_of(tmp_path, 7)
    assert first == FileFound(SegmentId(7, 1), whole + 4, (held,))
    assert (second.bytes, second.held) == (whole + len(content) + 4, (held, held))


def test_the_last_file_of_what_is_sealed_stays() -> None:
    last = [file(2, OLD_US)]
    assert list(left_wrongly(last, last, TO_AGE, YOUNG_US))
    assert not list(left_wrongly(last, last, TO_AGE, YOUNG_US, is_sealed=True))
    assert list(left_wrongly(FILES, FILES[1:], TO_AGE, YOUNG_US, is_sealed=True))
