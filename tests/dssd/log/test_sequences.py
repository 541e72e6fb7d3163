"""Idempotence against a model that remembers everything."""

import struct
from collections.abc import Callable
from typing import Any

import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from dss_core.errors import (
    DssError,
    ProducerForgotten,
    SequenceGap,
    SequenceTooOld,
    TooManyProducers,
)
from dss_core.ids import StreamId
from dss_core.limits import PRODUCER_WINDOW_SEQUENCES as WINDOW
from dss_core.producer_ids import NO_PRODUCER, new_producer_id
from dssd.log.limits import PRODUCER_FORGOTTEN_US
from dssd.log.port import Append, Appended
from dssd.log.producer_room import NOBODY, PRODUCER_KEPT_US, ProducerRoom
from dssd.log.recent_sequences import FirstAnswer
from dssd.log.sequences import (
    SEQUENCE_MAX,
    BadSnapshot,
    Producers,
    SnapshotPosition,
)
from dssd.log.write.group_commit import PRODUCERS_SWEEP_US

Bench = Any
A = b"a" * 16
B = b"b" * 16
COVERED = SnapshotPosition(7, 3, 64)


def outcome(producers: Producers, partition: int, sequence: int) -> object:
    try:
        return producers.answer(partition, A, sequence)
    except DssError as refused:
        return type(refused)


def remembering(count: int, start: int = 0) -> Producers:
    producers = Producers(7)
    for sequence in range(start, start + count):
        producers.stored(0, A, sequence, FirstAnswer(sequence, 1, 100))
    return producers


def test_asking_for_the_first_answer_alone_changes_nothing() -> None:
    producers = remembering(WINDOW + 2)
    producers.doubt()
    assert producers.first_answer(0, A, WINDOW + 1) == FirstAnswer(WINDOW + 1, 1, 100)
    assert producers.first_answer(0, A, 2) == FirstAnswer(2, 1, 100)
    for unknown in (WINDOW + 2, WINDOW + 9):
        assert producers.first_answer(0, A, unknown) is None
    assert producers.first_answer(0, B, 0) is None
    assert producers.first_answer(1, A, 0) is None
    assert producers.first_answer(0, NO_PRODUCER, 0) is None
    with pytest.raises(SequenceTooOld):
        producers.first_answer(0, A, 1)
    assert producers.answer(0, A, 2) == FirstAnswer(2, 1, 100)


@given(st.lists(st.integers(0, 12), max_size=60))
def test_every_sequence_is_stored_once_and_answered_alike(sent: list[int]) -> None:
    producers = Producers(7)
    stored: dict[int, FirstAnswer] = {}
    for sequence in sent:
        last = max(stored, default=None)
        expected: object
        if last is None or sequence == last + 1:
            expected = None
        elif sequence > last + 1:
            expected = SequenceGap
        elif sequence > last - WINDOW and sequence in stored:
            expected = stored[sequence]
        else:
            expected = SequenceTooOld
        assert outcome(producers, 0, sequence) == expected
        if expected is None:
            stored[sequence] = FirstAnswer(len(stored), 1, 50)
            producers.stored(0, A, sequence, stored[sequence])


def test_an_unknown_producer_may_start_anywhere_but_at_the_end_of_numbers() -> None:
    assert outcome(Producers(7), 0, 41) is None
    assert outcome(Producers(7), 0, SEQUENCE_MAX + 1) is SequenceGap


def test_each_stream_has_its_own_sequences() -> None:
    producers = remembering(3)
    assert outcome(producers, 1, 0) is None


def test_frames_without_a_producer_are_never_repeats() -> None:
    producers = Producers(7)
    producers.stored(0, NO_PRODUCER, 0, FirstAnswer(0, 1, 1))
    assert producers.answer(0, NO_PRODUCER, 0) is None
    assert len(producers) == 0


@given(known=st.integers(0, 8), new=st.integers(1, 8))
def test_frames_taken_back_can_be_stored_again(known: int, new: int) -> None:
    producers = remembering(known + new)
    for sequence in reversed(range(known, known + new)):
        producers.taken_back(0, A, sequence)
    assert outcome(producers, 0, known) is None
    assert outcome(producers, 0, known + 1) is SequenceGap
    for sequence in range(known):
        assert outcome(producers, 0, sequence) in (SequenceTooOld, FirstAnswer(sequence, 1, 100))


@pytest.mark.parametrize("new", [1, WINDOW])
def test_a_producer_of_which_nothing_was_stored_may_go_on_at_an_older_sequence(new: int) -> None:
    producers = remembering(new, start=3)
    for sequence in reversed(range(3, 3 + new)):
        producers.taken_back(0, A, sequence)
    assert len(producers) == 0
    assert outcome(producers, 0, 0) is None
    producers.stored(0, A, 0, FirstAnswer(0, 1, 100))
    assert outcome(producers, 0, 0) == FirstAnswer(0, 1, 100)
    assert outcome(producers, 0, 2) is SequenceGap


def test_a_producer_whose_first_frame_found_no_room_begins_with_it_or_an_earlier_one() -> None:
    producers = Producers(7)
    assert outcome(producers, 0, 3) is None
    producers.refused(0, A, 3)
    for behind in (4, 5, 90):
        assert outcome(producers, 0, behind) is SequenceGap
    assert producers.first_answer(0, A, 4) is None, "nothing is to be stored"
    assert producers.answer(0, B, 4) is None
    assert outcome(producers, 1, 4) is None
    assert outcome(producers, 0, 2) is None, "the client has numbered its frames anew"
    producers.refused(0, A, 2)
    assert outcome(producers, 0, 3) is SequenceGap
    producers.stored(0, A, 2, FirstAnswer(0, 1, 100))
    assert outcome(producers, 0, 3) is None
    assert outcome(producers, 0, 4) is SequenceGap


def test_a_start_forgets_that_a_first_frame_found_no_room() -> None:
    producers = Producers(7)
    producers.refused(0, A, 3)
    again, _ = Producers.decode(producers.encode(COVERED))
    assert outcome(again, 0, 4) is None


def test_a_refusal_does_not_move_a_producer_that_has_stored_something() -> None:
    producers = remembering(3)
    producers.refused(0, A, 3)
    producers.refused(0, NO_PRODUCER, 0)
    assert outcome(producers, 0, 3) is None
    producers.forget_before(101)
    assert outcome(producers, 0, 4) is ProducerForgotten
    assert producers.answer(0, NO_PRODUCER, 1) is None


def test_a_producer_that_stored_something_is_known_also_where_no_answer_of_it_is_left() -> None:
    producers = remembering(WINDOW + 3)
    for sequence in reversed(range(3, WINDOW + 3)):
        producers.taken_back(0, A, sequence)
    assert [outcome(producers, 0, sequence) for sequence in range(3)] == [SequenceTooOld] * 3
    assert outcome(producers, 0, 4) is SequenceGap
    damaged = remembering(1)
    damaged.lost(0, A, 0, 100)
    damaged.stored(0, A, 1, FirstAnswer(1, 1, 100))
    damaged.taken_back(0, A, 1)
    assert outcome(damaged, 0, 0) is SequenceTooOld


def test_learning_a_frame_twice_changes_nothing() -> None:
    producers = remembering(4)
    before = producers.encode(COVERED)
    for sequence in range(4):
        producers.stored(0, A, sequence, FirstAnswer(sequence, 1, 100))
    assert producers.encode(COVERED) == before


def test_a_hole_left_by_damage_does_not_shift_answers() -> None:
    producers = remembering(3)
    producers.stored(0, A, 7, FirstAnswer(70, 1, 100))
    assert outcome(producers, 0, 7) == FirstAnswer(70, 1, 100)
    assert outcome(producers, 0, 6) is SequenceTooOld


def test_silent_producers_are_forgotten() -> None:
    producers = remembering(3)
    producers.forget_before(100)
    assert len(producers) == 1
    producers.forget_before(101)
    assert len(producers) == 0


@given(
    st.lists(st.tuples(st.integers(0, 3), st.binary(min_size=16, max_size=16)), max_size=5),
    st.integers(0, 9),
)
def test_a_snapshot_gives_the_same_state(keys: list[tuple[int, bytes]], count: int) -> None:
    producers = Producers(7)
    for partition, producer_id in keys:
        for sequence in range(count):
            producers.stored(partition, producer_id, sequence, FirstAnswer(sequence, 2, 9))
    snapshot = producers.encode(COVERED)
    again, covered = Producers.decode(snapshot)
    assert covered == COVERED
    assert again.encode(COVERED) == snapshot


def test_every_flipped_bit_of_a_snapshot_is_noticed() -> None:
    snapshot = remembering(6).encode(COVERED)
    for position in range(len(snapshot) * 8):
        flipped = bytearray(snapshot)
        flipped[position // 8] ^= 1 << position % 8
        with pytest.raises(BadSnapshot):
            Producers.decode(bytes(flipped))


def test_every_shortened_snapshot_is_noticed() -> None:
    snapshot = remembering(6).encode(COVERED)
    for size in range(len(snapshot)):
        with pytest.raises(BadSnapshot):
            Producers.decode(snapshot[:size])


def test_a_repeat_of_a_lost_frame_is_too_old_and_those_after_it_are_answered() -> None:
    producers = remembering(4)
    producers.lost(0, A, 1, 100)
    assert outcome(producers, 0, 1) is SequenceTooOld
    assert outcome(producers, 0, 2) == FirstAnswer(2, 1, 100)
    producers.lost(0, A, 5, 100)
    assert outcome(producers, 0, 5) is SequenceTooOld
    assert outcome(producers, 0, 6) is None
    unknown = Producers(7)
    unknown.lost(0, A, 3, 100)
    assert outcome(unknown, 0, 3) is SequenceTooOld
    assert outcome(unknown, 0, 4) is None


def test_a_producer_in_doubt_may_skip_sequences_once() -> None:
    producers = remembering(3)
    producers.doubt()
    assert outcome(producers, 0, 2) == FirstAnswer(2, 1, 100)
    assert outcome(producers, 0, SEQUENCE_MAX + 1) is SequenceGap
    assert outcome(producers, 0, 7) is None
    assert outcome(producers, 0, 8) is SequenceGap, "the frame before was not stored"
    producers.stored(0, A, 7, FirstAnswer(9, 1, 100))
    assert outcome(producers, 0, 7) == FirstAnswer(9, 1, 100)
    assert outcome(producers, 0, 5) is SequenceTooOld
    assert outcome(producers, 0, 9) is SequenceGap


def test_where_the_frame_that_ended_the_doubt_was_not_stored_those_before_it_come_yet() -> None:
    producers = remembering(3)
    producers.doubt()
    assert outcome(producers, 0, 7) is None
    producers.stored(0, A, 7, FirstAnswer(9, 1, 100))
    producers.taken_back(0, A, 7)
    assert outcome(producers, 0, 8) is SequenceGap
    assert outcome(producers, 0, 2) is SequenceTooOld, "it was there before the doubt"
    assert outcome(producers, 0, 4) is None
    producers.stored(0, A, 4, FirstAnswer(9, 1, 100))
    assert outcome(producers, 0, 3) is SequenceTooOld
    assert outcome(producers, 0, 5) is None


def test_a_producer_in_doubt_that_continues_without_a_gap_is_no_longer_in_doubt() -> None:
    producers = remembering(3)
    producers.doubt()
    assert outcome(producers, 0, 3) is None
    assert outcome(producers, 0, 4) is SequenceGap


def test_a_snapshot_keeps_the_doubt() -> None:
    producers = remembering(WINDOW)
    producers.doubt()
    producers.stored(1, A, 0, FirstAnswer(0, 1, 100))
    again, _ = Producers.decode(producers.encode(COVERED))
    assert outcome(again, 1, 2) is SequenceGap
    assert outcome(again, 0, WINDOW - 1) == FirstAnswer(WINDOW - 1, 1, 100)
    assert outcome(again, 0, WINDOW + 3) is None


def test_answers_for_frames_that_are_gone_are_forgotten_with_the_older_ones() -> None:
    producers = remembering(5)
    producers.stored(1, A, 0, FirstAnswer(2, 1, 100))
    producers.forget_gone(lambda partition, offset: (partition, offset) != (0, 2))
    assert [outcome(producers, 0, sequence) for sequence in range(5)] == [
        SequenceTooOld,
        SequenceTooOld,
        SequenceTooOld,
        FirstAnswer(3, 1, 100),
        FirstAnswer(4, 1, 100),
    ]
    assert outcome(producers, 0, 5) is None
    assert outcome(producers, 1, 0) == FirstAnswer(2, 1, 100)


@given(
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from([A, B]), st.booleans()), max_size=40),
    st.integers(0, 40),
    st.integers(0, 40),
)
def test_changes_bring_a_state_up_to_date(
    frames: list[tuple[int, bytes, bool]], snapshot_at: int, seen_at: int
) -> None:
    """The snapshot is taken before, among or after the changes."""
    producers = Producers(7)
    snapshot, changes = producers.encode(COVERED), b""
    sequences: dict[tuple[int, bytes], int] = {}
    for number, (partition, producer, damaged) in enumerate(frames):
        if number == snapshot_at:
            snapshot = producers.encode(COVERED)
        if number == seen_at:
            changes += producers.take_changes()
        sequence = sequences[partition, producer] = sequences.get((partition, producer), -1) + 1
        if damaged:
            producers.lost(partition, producer, sequence, number)
        else:
            producers.stored(partition, producer, sequence, FirstAnswer(number, 1, number))
    changes += producers.take_changes()
    again, _ = Producers.decode(snapshot)
    again.apply(changes)
    assert sorted_entries(again) == sorted_entries(producers)
    assert producers.take_changes() == b""


def sorted_entries(
    producers: Producers,
) -> list[tuple[tuple[int, bytes], int, int, list[FirstAnswer]]]:
    return sorted(
        (key, recent.last, recent.time_us, recent.answers())
        for key, recent in producers._recent.items()
    )


def test_changes_cover_producers_that_sent_since_and_are_still_known() -> None:
    producers = remembering(3)
    first = producers.take_changes()
    producers.stored(1, A, 0, FirstAnswer(9, 1, 500))
    producers.stored(2, A, 0, FirstAnswer(9, 1, 400))
    producers.forget_before(500)
    changes = producers.take_changes()
    again = Producers(7)
    again.apply(changes)
    assert len(again) == 1
    assert outcome(again, 1, 0) == FirstAnswer(9, 1, 500)
    again.apply(first)
    assert outcome(again, 0, 2) == FirstAnswer(2, 1, 100)
    assert len(again) == 2


def test_a_frame_that_is_known_already_counts_as_a_change() -> None:
    producers, _ = Producers.decode(remembering(3).encode(COVERED))
    assert producers.take_changes() == b""
    producers.stored(0, A, 1, FirstAnswer(1, 1, 100))
    again = Producers(7)
    again.apply(producers.take_changes())
    assert outcome(again, 0, 2) == FirstAnswer(2, 1, 100)


def test_a_snapshot_keeps_the_time_of_the_newest_frame() -> None:
    producers = remembering(3)
    producers.newest_us = 700
    again, _ = Producers.decode(producers.encode(COVERED))
    assert again.newest_us == 700


def older_snapshot(version: int) -> bytes:
    """Of one producer, as the versions before had it."""
    head, entry = struct.calcsize("<8sIIIQQQ"), struct.calcsize("<H16sqQ")
    newer = remembering(3).encode(COVERED)
    first = head + 8 + entry + 9
    assert newer[first : first + entry][2:18] == A
    older = bytearray(newer[:head])
    struct.pack_into("<I", older, 8, version)
    struct.pack_into("<Q", older, head - 8, 1)
    older += newer[head : head + 8] if version == 2 else b""
    older += newer[first : first + entry] + newer[first + entry + 8 : -8]
    return bytes(older) + struct.pack("<Q", xxhash.xxh3_64_intdigest(bytes(older)))


@pytest.mark.parametrize("version", [1, 2])
def test_a_snapshot_of_an_older_version_is_read(version: int) -> None:
    again, covered = Producers.decode(older_snapshot(version))
    assert covered == COVERED
    assert again.newest_us == again.forgotten_us == 0
    assert sorted_entries(again) == sorted_entries(remembering(3))


def test_a_start_learns_that_a_producer_was_forgotten_and_began_anew() -> None:
    """A start reads the frames of both lives of the producer, after its snapshot."""
    producers = remembering(6)
    again = [FirstAnswer(20 + sequence, 1, 100) for sequence in range(2, 4)]
    for sequence, answer in enumerate(again, start=2):
        producers.stored(0, A, sequence, answer)
    assert [outcome(producers, 0, sequence) for sequence in range(1, 5)] == [
        SequenceTooOld,
        *again,
        None,
    ]


def test_a_start_does_not_take_a_known_frame_for_a_later_one() -> None:
    producers = remembering(6)
    producers.lost(0, A, 6, 100)
    before = producers.encode(COVERED)
    for sequence in range(6):
        producers.stored(0, A, sequence, FirstAnswer(sequence, 1, 100))
    assert producers.encode(COVERED) == before


def test_a_producer_is_as_old_as_its_last_append() -> None:
    producers = remembering(3)
    producers.stored(0, A, 2, FirstAnswer(9, 1, 500))
    producers.stored(1, A, 0, FirstAnswer(0, 1, 100))
    producers.lost(1, A, 1, 500)
    producers.forget_before(500)
    assert len(producers) == 2
    producers.forget_before(501)
    assert len(producers) == 0


def sent(producers: Producers, producer_id: bytes, owner: int = 1, sequence: int = 0) -> object:
    """What a frame of a producer in the first stream is answered with."""
    try:
        known = producers.answer(0, producer_id, sequence)
        if known is None:
            producers.make_room(0, producer_id, owner)
            new = FirstAnswer(len(producers), 1, 100)
            producers.stored(0, producer_id, sequence, new, owner)
    except DssError as refused:
        return type(refused)
    return known


def ids(count: int, began_us: int = 1_000) -> list[bytes]:
    return [new_producer_id(began_us + number) for number in range(count)]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "PRODUCERS_MAX": 8,
        "PRODUCERS_RESERVE": 2,
        "PRODUCERS_FEW": 2,
        "PRODUCERS_OWNER_MAX": 4,
        "PRODUCERS_FORGOTTEN_AT_ONCE": 1,
    }.items():
        monkeypatch.setattr(f"dssd.log.producer_room.{name}", value)


@pytest.mark.usefixtures("small")
def test_a_newcomer_beyond_the_bound_takes_the_place_of_who_was_silent_for_longest() -> None:
    producers = Producers(7)
    known = ids(4)
    for at_us, one in enumerate(known):
        producers.now_us = at_us
        assert sent(producers, one) is None
    assert sent(producers, known[0], sequence=1) is None
    newcomer = new_producer_id(5_000)
    producers.now_us = PRODUCER_KEPT_US
    assert sent(producers, newcomer) is TooManyProducers, "nobody was silent for long enough"
    producers.now_us = PRODUCER_KEPT_US + 1
    assert sent(producers, newcomer) is None
    assert sent(producers, known[1]) is ProducerForgotten
    for one in (known[0], known[2], known[3]):
        assert isinstance(sent(producers, one), FirstAnswer)


@pytest.mark.usefixtures("small")
def test_what_a_forgotten_producer_sends_is_not_stored() -> None:
    """It may have been stored before; of one that began later that cannot be."""
    producers = Producers(7)
    forgotten, other = ids(2)
    unnamed = b"u" * 16
    for one in (forgotten, unnamed):
        assert sent(producers, one) is None
    producers.forget_before(101)
    for sequence in (0, 1, 9):
        assert sent(producers, forgotten, sequence=sequence) is ProducerForgotten
    with pytest.raises(ProducerForgotten):
        producers.first_answer(0, forgotten, 0)
    assert sent(producers, unnamed, sequence=1) is ProducerForgotten
    assert sent(producers, b"v" * 16) is None, "only an old client has such an id"
    assert sent(producers, other, sequence=3) is None, "what it sent before may be lost"


def test_over_a_start_it_is_known_that_producers_were_forgotten() -> None:
    producers = Producers(7)
    first, second = ids(2)
    before, _ = Producers.decode(producers.encode(COVERED))
    assert sent(producers, first) is None
    producers.forget_before(101)
    again, _ = Producers.decode(producers.encode(COVERED))
    assert sent(again, first) is ProducerForgotten
    assert sent(again, second) is None
    before.apply(producers.take_changes())
    assert sent(before, first) is ProducerForgotten


@pytest.mark.usefixtures("small")
def test_who_has_many_producers_keeps_nobody_out() -> None:
    room = ProducerRoom()
    topics = [Producers(number) for number in range(2)]
    for producers in topics:
        producers.count_in(room)
    for producers in topics:
        for one in ids(4):
            sent(producers, one, owner=1)
    assert room.count == 6, "the last places are for those who have few"
    assert sent(topics[0], new_producer_id(9), owner=2) is None
    assert sent(topics[0], new_producer_id(9), owner=2) is None
    assert sent(topics[0], new_producer_id(9), owner=2) is TooManyProducers


@pytest.mark.usefixtures("small")
def test_the_largest_share_gives_way_and_no_other() -> None:
    room = ProducerRoom()
    modest, greedy = Producers(1), Producers(2)
    for producers in (modest, greedy):
        producers.count_in(room)
    own, many = ids(2), ids(4)
    for one in own:
        sent(modest, one, owner=1)
    for one in many:
        sent(greedy, one, owner=2)
    for producers in (modest, greedy):
        producers.now_us = 2 * PRODUCER_KEPT_US
    for newcomer in (3, 3, 4):
        assert sent(modest, new_producer_id(9_000), owner=newcomer) is None
    assert sent(greedy, new_producer_id(9_000), owner=2) is None
    assert sent(greedy, many[0], owner=2) is ProducerForgotten
    assert all(isinstance(sent(modest, one, owner=1), FirstAnswer) for one in own)


@pytest.mark.usefixtures("small")
def test_a_producer_counts_for_its_owner_as_soon_as_that_is_known() -> None:
    """A frame that only the log remembers says nothing of its caller; the next one of him does."""
    room = ProducerRoom()
    producers = Producers(7)
    producers.count_in(room)
    own = ids(4)
    for one in own:
        producers.stored(0, one, 0, FirstAnswer(0, 1, 100))
    assert [(share.owner, share.count) for share in room.shares] == [(NOBODY, 4)]
    for one in own:
        assert sent(producers, one, sequence=1, owner=5) is None
    assert [(share.owner, share.count) for share in room.shares] == [(5, 4)]
    assert room.count == 4
    assert sent(producers, new_producer_id(9_000), owner=5) is TooManyProducers
    assert sent(producers, new_producer_id(9_000), owner=6) is None
    assert isinstance(sent(producers, own[0], owner=5), FirstAnswer), "it was stored before"


@pytest.mark.usefixtures("small")
def test_over_a_start_the_producers_of_an_owner_are_its_own_and_young() -> None:
    producers = Producers(7)
    for one in ids(4):
        sent(producers, one, owner=5)
    again, _ = Producers.decode(producers.encode(COVERED))
    started_us = 3 * PRODUCER_KEPT_US
    again.count_in(ProducerRoom(started_us))
    again.now_us = started_us + PRODUCER_KEPT_US - 1
    assert sent(again, new_producer_id(9_000), owner=5) is TooManyProducers
    assert sent(again, new_producer_id(9_000), owner=6) is None
    again.now_us += 1
    assert sent(again, new_producer_id(9_000), owner=5) is None


async def test_a_topic_that_goes_leaves_room(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, make_frame: Callable[..., bytes]
) -> None:
    monkeypatch.setattr("dssd.log.producer_room.PRODUCERS_MAX", 1)
    monkeypatch.setattr("dssd.log.producer_room.PRODUCERS_RESERVE", 0)
    bench.log.open_storage_topic(8, 1)
    first, second = (
        Append(StreamId(number, 0), make_frame(b"x", producer=producer), 1)
        for number, producer in ((8, A), (7, B))
    )
    assert isinstance((await bench.log.append([first]))[0], Appended)
    assert isinstance((await bench.log.append([second]))[0], TooManyProducers)
    await bench.log.remove_storage_topic(8)
    assert isinstance((await bench.log.append([second]))[0], Appended)


async def test_no_step_of_the_clock_makes_a_producer_silent(
    bench: Bench, make_frame: Callable[..., bytes]
) -> None:
    async def sent(producer: bytes, sequence: int) -> object:
        return type(await bench.append(make_frame(b"x", producer=producer, sequence=sequence)))

    assert await sent(A, 0) is Appended
    for sequence, step_us in enumerate((30, -30, 60), 1):
        bench.now_us += step_us * PRODUCER_FORGOTTEN_US
        bench.passed_us += PRODUCER_FORGOTTEN_US // 3
        assert await sent(A, sequence) is Appended
    assert await sent(B, 0) is Appended
    bench.passed_us += PRODUCER_FORGOTTEN_US
    assert await sent(A, 4) is Appended, "it was silent for a day, and no longer"
    bench.passed_us += 1
    bench.now_us -= PRODUCER_FORGOTTEN_US
    assert await sent(B, 1) is Appended, "they are looked through once an hour"
    bench.passed_us += PRODUCER_FORGOTTEN_US + PRODUCERS_SWEEP_US
    assert await sent(B, 2) is ProducerForgotten


async def test_a_start_after_a_step_of_the_clock_forgets_nobody(
    bench: Bench, make_frame: Callable[..., bytes]
) -> None:
    assert isinstance(await bench.append(make_frame(b"x", producer=A)), Appended)
    await bench.log.close()
    bench.now_us += 30 * PRODUCER_FORGOTTEN_US
    await bench.open()
    again = await bench.append(make_frame(b"x", producer=A, sequence=1))
    assert isinstance(again, Appended)


async def test_ids_of_producers_that_begin_now_are_newer_than_forgotten_ones(
    bench: Bench, make_frame: Callable[..., bytes]
) -> None:
    """Also where the clock was set back."""
    ahead_us = bench.now_us + PRODUCER_FORGOTTEN_US
    built = make_frame(b"x", producer=new_producer_id(ahead_us))
    assert isinstance(await bench.append(built), Appended)
    bench.now_us += 10 * PRODUCER_FORGOTTEN_US
    bench.passed_us += 10 * PRODUCER_FORGOTTEN_US
    assert isinstance(await bench.append(make_frame(b"x", producer=A)), Appended)
    bench.now_us -= 10 * PRODUCER_FORGOTTEN_US
    assert bench.log.producers_begin_us(7) == ahead_us + 1
    assert isinstance(await bench.append(built), ProducerForgotten)
