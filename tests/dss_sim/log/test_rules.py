"""Each rule of the judge, and the shortest case that breaks it."""

from dataclasses import replace

import pytest

from dss_core.frame import HEADER_BYTES
from dss_core.ids import StreamId
from dss_sim.log.acts import Sending
from dss_sim.log.ledger import (
    ANONYMOUS,
    BETWEEN_READS_US,
    FORGOTTEN,
    FORGOTTEN_AFTER_US,
    GONE,
    PRODUCERS,
    ClockRead,
    DamageSeen,
    EndSeen,
    Fact,
    Frame,
    FrameHit,
    FrameRefused,
    FrameSent,
    FrameStored,
    Ledger,
    Place,
    PowerLost,
    Rotten,
)
from dss_sim.log.new_frame import id_of, new_frame
from dss_sim.log.rules import (
    gap_in,
    judged,
    report_violations,
    stamped_at,
    topic_violations,
)
from dss_sim.log.stream_contents import FoundFrame, StreamFound
from dss_sim.power_loss.promises import (
    RemovalAsked,
    TopicAsked,
    TopicMade,
    TopicRemoved,
    TrimAsked,
    Trimmed,
)

STREAM = StreamId(2, 0)
NOW_US = 1_000
KEYS = (b"a", None)


def sent(number: int, sequence: int, producer: int = 0) -> Frame:
    sending = Sending(0, 0, producer, records=2, length=9)
    return new_frame(number, STREAM, sequence, sending, KEYS, id_of(producer, NOW_US))


FIRST, SECOND = sent(0, 0), sent(1, 1)
BOTH: tuple[Fact, ...] = (FrameSent(FIRST), FrameSent(SECOND))
STORED = (*BOTH, FrameStored(0, Place(0, NOW_US)), FrameStored(1, Place(2, NOW_US)))


def lying(frame: Frame, base: int, time_us: int = NOW_US) -> FoundFrame:
    return FoundFrame(base, frame.records, time_us, stamped_at(frame, base, time_us))


def found(*frames: FoundFrame, start: int = 0, end: int | None = None) -> StreamFound:
    behind = frames[-1].end if frames else start
    return StreamFound(start, behind if end is None else end, list(frames))


WHOLE = found(lying(FIRST, 0), lying(SECOND, 2))


def rules(stream: StreamFound, *facts: Fact) -> list[str]:
    return [violation.rule for violation in judged({STREAM: stream}, Ledger.of(facts))]


def test_what_was_stored_and_is_found_breaks_no_rule() -> None:
    assert rules(WHOLE, *STORED) == []
    assert rules(WHOLE, *BOTH) == [], "nor what was never answered"
    assert rules(found(lying(FIRST, 0)), *BOTH) == []


def test_a_stored_frame_is_missing() -> None:
    assert rules(found(lying(FIRST, 0), end=4), *STORED) == ["acked", "dense"]


def test_a_stored_frame_lies_elsewhere() -> None:
    facts = (FrameSent(FIRST), FrameStored(0, Place(7, NOW_US)))
    assert rules(found(lying(FIRST, 7), start=7), *facts, TrimAsked(*STREAM, 7)) == []
    assert "acked" in rules(found(lying(FIRST, 0), end=9), *facts)


def test_a_byte_of_a_frame_is_another() -> None:
    content = bytearray(lying(FIRST, 0).content)
    content[HEADER_BYTES - 1] ^= 1
    changed = replace(lying(FIRST, 0), content=bytes(content))
    assert rules(found(changed), FrameSent(FIRST)) == ["acked"]


@pytest.mark.parametrize("sent_with", [(b"b", None), (b"a", b""), (None, b"a")])
def test_a_record_is_read_with_another_key(sent_with: tuple[bytes | None, ...]) -> None:
    other = replace(FIRST, keys=sent_with)
    assert rules(found(lying(FIRST, 0)), FrameSent(other)) == ["keys"]


def test_a_frame_is_there_twice() -> None:
    assert "once" in rules(found(lying(FIRST, 0), lying(FIRST, 2)), *BOTH)


def test_two_records_have_one_offset() -> None:
    assert rules(found(lying(FIRST, 0), lying(SECOND, 1)), *BOTH) == ["once"]


def test_nobody_sent_a_frame() -> None:
    assert rules(WHOLE, FrameSent(FIRST)) == ["whole"]


@pytest.mark.parametrize("why", ["it was refused", GONE])
def test_a_frame_is_there_that_was_refused_or_given_up(why: str) -> None:
    assert rules(WHOLE, *BOTH, FrameRefused(1, why)) == ["whole"]
    assert rules(WHOLE, *BOTH, FrameRefused(1, why), FrameSent(SECOND)) == [], "sent again"


def test_a_frame_that_was_sent_twice_may_be_there_though_it_was_refused_once() -> None:
    twice = (*BOTH, FrameSent(SECOND), FrameRefused(1, "it was refused"))
    assert rules(WHOLE, *twice) == []
    assert rules(WHOLE, *twice, FrameRefused(1, "it was refused")) == ["whole"]


def test_a_producers_frames_change_places() -> None:
    assert rules(found(lying(SECOND, 0), lying(FIRST, 2)), *BOTH) == ["order"]


def test_append_times_fall() -> None:
    """Whatever the clock did, and behind what was trimmed too."""
    fallen = lying(SECOND, 2, NOW_US - 1)
    assert rules(found(lying(FIRST, 0), fallen), *BOTH) == ["times"]
    trimmed = (FrameSent(FIRST), FrameStored(0, Place(0, NOW_US)), TrimAsked(*STREAM, 2))
    behind = (*trimmed, FrameSent(SECOND))
    assert rules(found(fallen, start=2), *behind) == ["times"]
    assert rules(found(lying(SECOND, 2), start=2), *behind) == []
    assert rules(found(fallen, start=2), *behind, Rotten("file")) == []


SILENT_US = NOW_US + FORGOTTEN_AFTER_US
LATER = ClockRead(SILENT_US + 1)
AGAIN_US = SILENT_US + 2


def test_no_frame_is_there_twice_though_its_producer_may_be_forgotten() -> None:
    twice = found(lying(FIRST, 0), lying(SECOND, 2), lying(FIRST, 4, AGAIN_US))
    assert "once" in rules(twice, *STORED)
    assert "once" in rules(twice, *STORED, LATER)


def test_who_is_told_that_it_was_forgotten_goes_on_as_another_producer() -> None:
    ledger = Ledger.of((*STORED, LATER))
    assert ledger.current(STREAM, 0) == 0
    for number in (0, 1):
        ledger.learn(FrameRefused(number, FORGOTTEN))
    renamed = ledger.current(STREAM, 0)
    assert renamed == PRODUCERS
    assert ledger.next_sequence(STREAM, renamed) == 0
    assert ledger.places.keys() == {0, 1}, "what was stored before is still there"
    assert ledger.current(STREAM, 1) == 1
    assert ledger.current(STREAM, ANONYMOUS) == ANONYMOUS


def test_no_producer_is_forgotten_before_its_time() -> None:
    """Nor for a clock that goes back, nor one of which something came meanwhile."""
    early = ClockRead(SILENT_US - BETWEEN_READS_US)
    for facts in ((*STORED, early), (*STORED, ClockRead(0))):
        assert not Ledger.of(facts).lapsed
    assert Ledger.of((*STORED, LATER)).lapsed == {0, 1}
    fresh = (*BOTH, *STORED[2:3], FrameStored(1, Place(2, SILENT_US)))
    assert not Ledger.of((*fresh, LATER)).lapsed


def test_what_was_hit_and_stored_again_need_not_be_where_it_was() -> None:
    hit = (FrameSent(FIRST), STORED[2], FrameHit(0), Rotten("file"))
    facts = (*hit, FrameStored(0, Place(2, AGAIN_US)))
    kept = found(lying(FIRST, 2, AGAIN_US))
    kept.damaged.append((0, 2))
    assert rules(kept, *facts) == []


def test_an_answer_is_known_within_the_window_and_the_time() -> None:
    ledger = Ledger.of(STORED)
    assert ledger.is_answer_known(FIRST)
    ledger.learn(LATER)
    assert not ledger.is_answer_known(FIRST)
    assert not ledger.may_be_forgotten(FIRST), "it is never stored once more"


def test_what_the_power_may_have_taken_keeps_no_producer_known() -> None:
    one = replace(FIRST, durability="os")
    ledger = Ledger.of([FrameSent(one), FrameStored(0, Place(0, SILENT_US)), PowerLost()])
    ledger.learn(ClockRead(FORGOTTEN_AFTER_US))
    assert ledger.may_be_forgotten(one)


def test_an_offset_has_no_record() -> None:
    assert rules(found(lying(FIRST, 0), lying(SECOND, 3)), *BOTH) == ["dense"]


def test_damage_is_called_without_a_reason() -> None:
    stream = found(lying(FIRST, 0), end=3)
    stream.damaged.append((2, 3))
    facts = STORED[:1] + STORED[2:3]
    assert rules(stream, *facts) == ["dense"]
    assert rules(stream, *facts, Rotten("file")) == []
    assert rules(stream, *facts, DamageSeen(STREAM)) == []
    assert rules(stream, *facts, FrameSent(SECOND)) == [], "it was torn"


def test_damage_reaches_beyond_what_was_hit() -> None:
    stream = found(lying(FIRST, 0), end=4)
    stream.damaged.append((2, 4))
    assert rules(stream, *STORED, Rotten("file")) == ["acked"]
    assert rules(stream, *STORED, Rotten("file"), FrameHit(1)) == []


def test_a_read_makes_no_progress() -> None:
    stream = found(lying(FIRST, 0))
    stream.stuck_at = 0
    assert rules(stream, FrameSent(FIRST)) == ["dense"]


def test_trimmed_records_come_back_and_others_go() -> None:
    kept = found(lying(SECOND, 2), start=2)
    assert rules(kept, *STORED, TrimAsked(*STREAM, 2)) == []
    assert rules(kept, *STORED) == ["starts"]
    assert rules(WHOLE, *STORED, TrimAsked(*STREAM, 2)) == [], "it was not answered yet"
    assert rules(WHOLE, *STORED, TrimAsked(*STREAM, 2), Trimmed(*STREAM, 2)) == ["starts"]


def test_offsets_would_be_given_again() -> None:
    assert rules(WHOLE, *STORED, EndSeen(STREAM, 5)) == ["offsets"]


def test_a_topic_is_gone_or_came_back() -> None:
    made = TopicMade("t", 1, 2, 1)

    def broken(names: list[str], *facts: Fact) -> list[str]:
        return [one.rule for one in topic_violations(names, Ledger.of(facts))]

    asked = (TopicAsked("t"), made, RemovalAsked("t"))
    assert broken([], TopicAsked("t"), made) == ["topics"]
    assert broken(["t"], *asked) == broken([], *asked) == []
    assert broken(["t"], *asked, TopicRemoved("t")) == ["topics"]


def test_a_file_is_blamed_without_a_reason() -> None:
    reasons = ["torn tail: 7 bytes", "rebuilt: it was damaged"]
    assert [one.rule for one in report_violations(reasons, Ledger())] == ["reports"]
    assert not list(report_violations(reasons, Ledger.of([Rotten("file")])))


def test_a_gap_is_the_first_offset_that_nothing_covers() -> None:
    assert gap_in(0, 4, [(2, 4), (0, 2)]) is None
    assert gap_in(0, 4, [(0, 1), (2, 4)]) == 1
    assert gap_in(3, 4, [(0, 3)]) == 3
    assert gap_in(4, 4, []) is None
