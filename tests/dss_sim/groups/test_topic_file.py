"""What survives on a disk, and what producers are answered after it."""

from random import Random

import pytest

from dss_core.errors import SequenceTooOld
from dss_sim.groups.topic_file import CEILING_OFFSETS, Frame, Jump, TopicFile
from dssd.log.recent_sequences import FirstAnswer

A, B = (1).to_bytes(16), (2).to_bytes(16)
KEYS = ("a", None)
"""Of the two records of each frame."""


def file_of(*sequences: int, durability: str = "sync", shown: bool = True) -> TopicFile:
    """A file with frames of two records of A in partition 0, and whatever makes them durable."""
    file = TopicFile(1, 2, durability)
    write(file, *sequences)
    if shown:
        if file.wants_sync():
            file.sync()
        file.show()
    return file


def write(file: TopicFile, *sequences: int, partition: int = 0, by: bytes = A) -> None:
    for sequence in sequences:
        file.place(partition, by, sequence, sequence, KEYS, 7)


def dies(file: TopicFile, *, power: bool = False, seed: int = 0) -> None:
    file.crash(Random(seed), power=power)


def test_what_was_synced_survives_the_machine_and_is_answered_again() -> None:
    file = file_of(0, 1)
    dies(file, power=True)
    assert file.restart(clean=False) == ([], [], [])
    assert file.ends == [4, 0]
    assert file.producers.answer(0, A, 1) == FirstAnswer(2, 2, 7)
    assert file.producers.answer(0, A, 2) is None


def test_of_what_was_written_any_prefix_survives_a_process_and_nobody_was_told() -> None:
    survived = set()
    for seed in range(40):
        file = file_of(0)
        write(file, 1, 2, 3)
        dies(file, seed=seed)
        found = file.restart(clean=False)
        assert [frame.sequence for frame in found.survived] == [1, 2, 3][: len(found.survived)]
        assert file.ends[0] == 2 + 2 * len(found.survived)
        survived.add(len(found.survived))
    assert survived == {0, 1, 2, 3}


def test_frames_that_found_no_room_leave_offsets_and_sequences_as_they_were() -> None:
    file = file_of(0)
    write(file, 1, 2)
    assert [frame.sequence for frame in file.take_back(1)] == [1, 2]
    assert file.ends == [2, 0]
    assert file.producers.answer(0, A, 1) is None


@pytest.mark.parametrize("marked", [False, True])
def test_a_start_knows_all_producers_whatever_was_marked_before_it(marked: bool) -> None:
    file = file_of(0, 1)
    file.roll()
    write(file, 2)
    if marked:
        file.mark()
    write(file, 3)
    file.sync()
    file.show()
    dies(file)
    file.restart(clean=False)
    for sequence in range(4):
        assert file.producers.answer(0, A, sequence) == FirstAnswer(2 * sequence, 2, 7)


def test_after_a_clean_stop_nobody_is_in_doubt_and_after_any_other_everybody() -> None:
    file = file_of(0)
    file.close()
    file.restart(clean=True)
    with pytest.raises(Exception, match="does not follow"):
        file.producers.answer(0, A, 5)
    dies(file)
    file.restart(clean=False)
    assert file.producers.answer(0, A, 5) is None


def rotten(*, heads: bool, last: int = 2) -> TopicFile:
    """Three frames, of which the last is bad, and whose marks are gone."""
    file = file_of(0, 1, 2)
    file.mark()
    file.rot(0, last, 1, heads=heads)
    file.lose_marks()
    dies(file)
    return file


def test_rot_strikes_only_what_was_marked_as_durable() -> None:
    file = file_of(0, 1)
    assert file.rot(0, 0, 5, heads=False) == []
    file.mark()
    assert file.rot(0, 1, 5, heads=False) == [Frame(0, 2, 2, A, 1, 1, KEYS, 7)]
    assert file.rot(0, 0, 5, heads=False) == [Frame(0, 0, 2, A, 0, 0, KEYS, 7)]


def test_a_bad_frame_whose_header_is_whole_keeps_its_offsets_and_its_repeat_is_too_old() -> None:
    file = rotten(heads=False)
    assert file.restart(clean=False).damaged == [Jump(0, 4, 6)]
    assert file.ends[0] == 6
    with pytest.raises(SequenceTooOld):
        file.producers.answer(0, A, 2)


def test_for_bytes_that_nobody_can_read_a_stream_goes_on_as_far_as_they_may_have_reached() -> None:
    file = rotten(heads=True)
    assert file.restart(clean=False).damaged == [Jump(0, 4, 8), Jump(1, 0, 4)]
    assert file.ends == [8, 4]
    assert file.producers.answer(0, A, 2) is None


def test_a_later_frame_proves_where_its_stream_stood() -> None:
    file = rotten(heads=True, last=1)
    assert file.restart(clean=False).damaged == [Jump(1, 0, 4)]
    assert file.ends == [6, 4]


def test_damage_that_marks_hide_is_not_noticed_by_a_start() -> None:
    file = file_of(0)
    file.mark()
    file.rot(0, 0, 1, heads=True)
    dies(file)
    assert file.restart(clean=False).damaged == []
    assert file.producers.answer(0, A, 0) == FirstAnswer(0, 2, 7)


def test_an_os_topic_goes_on_at_its_ceiling_above_all_that_was_shown() -> None:
    file = file_of(0, 1, durability="os")
    assert file.ceilings == [0, 0]
    file.store_ceilings(file.low_ceilings())
    assert not file.low_ceilings()
    write(file, 2)
    assert not file.wants_sync()
    file.show()
    lost = 0
    dies(file, power=True)
    kept = len(file.frames)
    found = file.restart(clean=False)
    assert found.lost == [Jump(0, 2 * kept, 4 + CEILING_OFFSETS)]
    assert file.ends[0] == 4 + CEILING_OFFSETS
    assert kept >= 2 > lost


def test_what_outruns_its_ceiling_is_synced_before_it_is_shown() -> None:
    file = file_of(durability="os")
    write(file, 0)
    assert file.wants_sync()
    file.store_ceilings(file.low_ceilings())
    assert not file.wants_sync()


def test_a_topic_that_was_stopped_in_order_goes_on_where_it_ended() -> None:
    file = file_of(0, durability="os")
    file.store_ceilings(file.low_ceilings())
    file.close()
    assert file.restart(clean=True).lost == []
    dies(file, power=True)
    assert file.restart(clean=False).lost == []
    assert file.ends[0] == 2


def test_a_sealed_topic_ends_where_it_was_sealed() -> None:
    file = file_of(0, durability="os")
    file.store_ceilings(file.low_ceilings())
    file.seal()
    dies(file, power=True)
    assert file.restart(clean=False).lost == []
    assert file.ends[0] == 2


def test_producers_of_one_stream_do_not_touch_each_other() -> None:
    file = file_of(0, 1)
    write(file, 0, by=B)
    write(file, 0, partition=1, by=B)
    file.sync()
    file.show()
    dies(file)
    file.restart(clean=False)
    assert file.producers.answer(0, B, 0) == FirstAnswer(4, 2, 7)
    assert file.producers.answer(1, B, 0) == FirstAnswer(0, 2, 7)
