"""Each invariant, broken by the shortest history that breaks it."""

from pathlib import Path

import pytest

from dss_core.errors import DiskFull, DssError, SequenceGap, SequenceTooOld
from dss_sim.groups.checker import Checker, Violation, main
from dss_sim.groups.history import (
    AckDurable,
    Acked,
    Appended,
    Born,
    Committed,
    Damaged,
    Declared,
    Destroyed,
    Disturbed,
    Ended,
    Event,
    Gone,
    HandedOut,
    Key,
    Led,
    Lost,
    Passed,
    Published,
    Stored,
    Unpublished,
    Unreadable,
    write_history,
)
from dssd.limits import ISOLATE_AFTER_DOUBTS

G, S = "billing", "orders/0/0"


def declared(
    start: int = 0, every: int = 0, *, by_key: bool = False, on_damage: str = "pass"
) -> Declared:
    return Declared(0, G, ((S, start),), every, by_key, on_damage)


def handed_out(
    offset: int,
    *,
    epoch: int = 1,
    attempt: int = 1,
    redelivered: bool = False,
    to: str = "ann",
    key: Key = None,
) -> HandedOut:
    return HandedOut(1, G, S, offset, to, epoch, attempt, redelivered, key)


def acked(offset: int) -> Acked:
    return Acked(2, G, S, offset, "ann")


def committed(floor: int, *ranges: tuple[int, int], epoch: int = -1) -> Committed:
    return Committed(3, G, S, floor, ranges, epoch)


def stored(
    base: int,
    sequence: int,
    content: int | None = None,
    durability: str = "sync",
    keys: tuple[Key, ...] = (),
) -> Stored:
    sent = (sequence, sequence if content is None else content)
    return Stored(0, S, base, 2, "p", *sent, durability, keys)


def published(base: int, sequence: int, *, repeated: bool = False) -> Published:
    return Published(1, S, "p", sequence, base, 2, repeated)


def unpublished(sequence: int, error: type[DssError]) -> Unpublished:
    return Unpublished(1, S, "p", sequence, error.code)


TEN = Appended(0, S, 10)
FAULT = Disturbed(0, "crash")
STALLS = declared(on_damage="stall")

BROKEN: list[tuple[str, str, list[Event]]] = [
    ("S7", "a record that the log does not have", [declared(), TEN, handed_out(10)]),
    ("S7", "a record before the group's start", [declared(5), TEN, handed_out(4)]),
    ("S7", "a record that the filter rejects", [declared(every=3), TEN, handed_out(3)]),
    ("S4", "again without a mark", [declared(), TEN, handed_out(0), handed_out(0)]),
    (
        "S4",
        "an older grant after a newer one",
        [declared(), TEN, handed_out(0, epoch=2), handed_out(1, epoch=1)],
    ),
    ("S7", "a log that lost its end", [declared(), TEN, Appended(1, S, 9)]),
    ("I6", "first hand-outs out of order", [declared(), TEN, handed_out(1), handed_out(0)]),
    (
        "I6",
        "first hand-outs of a key out of order",
        [declared(by_key=True), TEN, handed_out(1, key="k"), handed_out(0, key="k")],
    ),
    (
        "S10",
        "an attempt that counts a hand-out too many",
        [declared(), TEN, handed_out(0, attempt=2, redelivered=True)],
    ),
    (
        "S10",
        "an attempt that does not count the one before under the same grant",
        [
            declared(), TEN, FAULT, handed_out(0), handed_out(0, attempt=2, redelivered=True),
            handed_out(0, attempt=2, redelivered=True),
        ],
    ),
    (
        "S10",
        "an attempt that forgets one of another grant, though nothing disturbed",
        [declared(), TEN, handed_out(0), handed_out(0, epoch=2, redelivered=True)],
    ),
    (
        "S3",
        "two members under one grant",
        [declared(), TEN, handed_out(0), handed_out(1, to="bob")],
    ),
    (
        "S3",
        "a grant that is not durable",
        [declared(), TEN, committed(0, epoch=1), handed_out(0, epoch=2)],
    ),
    (
        "I5",
        "a mark though nobody can have seen it",
        [declared(), TEN, handed_out(0), handed_out(1, epoch=2, redelivered=True)],
    ),
    (
        "I5",
        "a mark under the grant that was open as another leader came",
        [
            declared(), TEN, Led(0, G, 1), committed(0, epoch=1), handed_out(0),
            committed(0, epoch=2), handed_out(1, epoch=2), Led(2, G, 2),
            handed_out(2, epoch=2, redelivered=True),
        ],
    ),
    (
        "I5",
        "a mark on a record that came after the next grant of another leader did",
        [
            declared(), TEN, Led(0, G, 1), committed(0, epoch=1), handed_out(0), Led(2, G, 2),
            committed(0, epoch=2), Appended(3, S, 11), handed_out(10, epoch=2, redelivered=True),
        ],
    ),
    (
        "I17",
        "an ack that was durable before the grant that hands out again",
        [
            declared(), TEN, FAULT, handed_out(0), acked(0), committed(1), committed(1, epoch=2),
            handed_out(0, epoch=2, attempt=2, redelivered=True),
        ],
    ),
    (
        "A1",
        "again after its acknowledgement was durable",
        [
            declared(), TEN, handed_out(0), acked(0), AckDurable(3, G, S, ((0, 1),), "ann"),
            handed_out(0, attempt=2, redelivered=True),
        ],
    ),
    (
        "S2",
        "progress that shrinks",
        [declared(), TEN, handed_out(0), acked(0), committed(1), committed(0)],
    ),
    (
        "S2",
        "an acked range that is forgotten",
        [
            declared(), TEN, handed_out(0), handed_out(1), acked(1), committed(0, (1, 2)),
            committed(0),
        ],
    ),
    ("S2", "progress that nobody acknowledged", [declared(), TEN, committed(1)]),
    ("S2", "progress beyond the log", [declared(every=1), TEN, committed(11)]),
    (
        "S3",
        "a grant epoch that falls",
        [declared(), TEN, committed(0, epoch=2), committed(0, epoch=1)],
    ),
    ("S3", "a leader epoch twice", [declared(), Led(0, G, 1), Led(1, G, 1)]),
    ("L2", "an end that is not reached", [declared(), TEN, Ended(9)]),
    (
        "L2",
        "a stream born later, never read",
        [declared(10), TEN, Born(1, G, "b"), Appended(2, "b", 1), Ended(9)],
    ),
    (
        "I4",
        "a record that was acknowledged but never handed out",
        [declared(every=0), Appended(0, S, 1), acked(0), committed(1), Ended(9)],
    ),
    (
        "I5",
        "a record twice though nothing disturbed",
        [
            declared(), Appended(0, S, 1), handed_out(0),
            handed_out(0, attempt=2, redelivered=True), acked(0), committed(1), Ended(9),
        ],
    ),
    (
        "S20",
        "a record with the key of the one beside it",
        [declared(), stored(0, 0, keys=("a", "b")), handed_out(0, key="b")],
    ),
    (
        "S20",
        "a record that comes again with another key",
        [
            declared(), FAULT, stored(0, 0, keys=("a", None)), handed_out(0, key="a"),
            handed_out(0, epoch=2, attempt=2, redelivered=True, key="b"),
        ],
    ),
    (
        "S20",
        "a record that lost its key",
        [declared(), Appended(0, S, 5, ("a", "b")), handed_out(3)],
    ),
    (
        "S20",
        "an empty key for none",
        [declared(), Appended(0, S, 5, ("a", None)), handed_out(4, key="")],
    ),
    ("S8", "an offset that is given twice", [stored(0, 0), stored(0, 1)]),
    ("S8", "an offset that is left out", [stored(0, 0), stored(3, 1)]),
    (
        "S8",
        "an offset that is given again after the machine lost what had it",
        [stored(0, 0, durability="os"), Lost(1, S, 0, 9), stored(0, 1)],
    ),
    ("S7", "a sequence that is stored twice", [stored(0, 0), stored(2, 0)]),
    ("S7", "a frame that is stored under two sequences", [stored(0, 0), stored(2, 1, content=0)]),
    ("S8", "a frame behind a later one of its producer", [stored(0, 1), stored(2, 0)]),
    ("S7", "an ack of what is not stored", [stored(0, 0), published(2, 1)]),
    ("S7", "an ack with another place", [stored(0, 0), stored(2, 1), published(0, 1)]),
    (
        "S7",
        "a repeat that is answered with another place",
        [stored(0, 0), published(0, 0), published(2, 0, repeated=True)],
    ),
    (
        "S7",
        "a repeat that is answered as stored though it is lost",
        [stored(0, 0, durability="os"), Lost(1, S, 0, 9), published(0, 0, repeated=True)],
    ),
    (
        "S7",
        "a durable frame that goes with the machine",
        [stored(0, 0), published(0, 0), Lost(1, S, 0, 2)],
    ),
    ("S7", "a refusal of what is stored", [stored(0, 0), unpublished(0, DiskFull)]),
    ("S7", "an answer forgotten though nothing is lost", [unpublished(0, SequenceTooOld)]),
    ("S8", "a producer that is shut out by a gap", [unpublished(1, SequenceGap)]),
    (
        "S7",
        "a damaged record, handed out under a grant that came after the damage",
        [declared(), TEN, committed(0, epoch=1), Damaged(1, S, 0, 2), committed(0, epoch=2),
         handed_out(0, epoch=2)],
    ),
    (
        "I4",
        "a record that is never handed out, before one that is damaged",
        [declared(), TEN, Damaged(1, S, 1, 10), Passed(1, G, S, 1, 10), acked(0), committed(10),
         Ended(9)],
    ),
    (
        "S14",
        "damaged records passed without a word",
        [declared(), TEN, Damaged(1, S, 0, 4), Passed(1, G, S, 0, 3), committed(3), committed(4)],
    ),
    (
        "S14",
        "damaged records passed by a group that stays before them",
        [STALLS, TEN, Damaged(1, S, 0, 4), committed(4)],
    ),
    (
        "S14",
        "a group that stays before damaged records, and says that it does not",
        [STALLS, TEN, Damaged(1, S, 0, 4), Passed(1, G, S, 0, 4)],
    ),
    (
        "S14",
        "records called damaged that are not",
        [declared(), TEN, Damaged(1, S, 0, 4), Passed(1, G, S, 0, 5)],
    ),
    (
        "S2",
        "records passed of which nobody knows whether they are damaged",
        [declared(), TEN, Unreadable(1, S, 0, 2), committed(2)],
    ),
    (
        "L2",
        "a stream that stays before records that could be read, below some that cannot",
        [declared(), TEN, Unreadable(1, S, 2, 4), handed_out(0), acked(0), committed(1), Ended(9)],
    ),
    (
        "L2",
        "a stream that stays before damage that its group is done with",
        [STALLS, TEN, handed_out(0), handed_out(1), acked(0), acked(1), committed(2),
         Damaged(1, S, 0, 2), Ended(9)],
    ),
    (
        "I4",
        "a record stored after a loss of power, never handed out",
        [
            declared(), stored(0, 0, durability="os"), Lost(1, S, 0, 9), stored(9, 1), acked(9),
            acked(10), committed(11), Ended(9),
        ],
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("invariant", "events"),
    [(invariant, events) for invariant, _, events in BROKEN],
    ids=[f"{invariant} {text}" for invariant, text, _ in BROKEN],
)
def test_the_last_event_breaks_the_invariant(invariant: str, events: list[Event]) -> None:
    checker = Checker()
    checker.take_all(events[:-1])
    with pytest.raises(Violation) as found:
        checker.take(events[-1])
    assert found.value.invariant == invariant


def test_a_history_in_which_all_went_well_is_accepted() -> None:
    Checker().take_all(
        [
            declared(every=2),
            Appended(0, S, 4),
            Led(0, G, 1),
            committed(0, epoch=1),
            handed_out(1),
            acked(1),
            AckDurable(3, G, S, ((1, 2),), "ann"),
            committed(3),
            handed_out(3),
            acked(3),
            committed(4),
            Ended(9),
        ]
    )


def test_keys_are_those_that_were_appended_where_somebody_told_of_them() -> None:
    Checker().take_all(
        [
            declared(),
            stored(0, 0, keys=("a", None)),
            Appended(0, S, 4, ("",)),
            handed_out(0, key="a"),
            handed_out(1),
            handed_out(2, key="of which nobody told"),
            handed_out(3, key=""),
        ]
    )


def test_after_a_disturbance_a_record_may_come_twice_if_it_is_marked() -> None:
    again = handed_out(0, epoch=2, attempt=2, redelivered=True)
    Checker().take_all(
        [
            declared(),
            Appended(0, S, 1),
            handed_out(0),
            Disturbed(1, "kill"),
            again,
            acked(0),
            committed(1),
            Ended(9),
        ]
    )


def test_in_a_group_by_key_records_of_other_keys_may_go_first() -> None:
    Checker().take_all(
        [declared(by_key=True), TEN, handed_out(1, key="k"), handed_out(0, key="other")]
    )


def test_what_clients_vanished_with_may_come_behind_later_records_where_it_is_blamed_enough() -> (
    None
):
    begun: list[Event] = [declared(), TEN, FAULT, committed(0, epoch=9), handed_out(1, epoch=9)]
    alone = ISOLATE_AFTER_DOUBTS + 1
    Checker().take_all([*begun, handed_out(0, epoch=9, attempt=alone, redelivered=True)])
    with pytest.raises(Violation, match="I6"):
        Checker().take_all([*begun, handed_out(0, epoch=9, attempt=alone - 1, redelivered=True)])


def test_a_mark_is_no_wonder_where_nobody_knows_whether_the_grant_before_handed_out() -> None:
    marked = handed_out(1, epoch=3, redelivered=True)
    Checker().take_all([declared(), TEN, handed_out(0), marked])
    Checker().take_all([declared(), TEN, FAULT, handed_out(0, epoch=2), marked])


def test_a_mark_is_no_wonder_where_a_new_leader_cannot_know_how_far_records_went_out() -> None:
    history: list[Event] = [
        declared(), TEN, Led(0, G, 1), committed(0, epoch=1), handed_out(0), Led(2, G, 2),
        committed(0, epoch=2), handed_out(1, epoch=2, redelivered=True),
    ]  # fmt: skip
    Checker().take_all(history)


def test_an_ack_that_became_durable_after_the_grant_may_come_too_late_for_it() -> None:
    again = handed_out(0, epoch=2, attempt=2, redelivered=True)
    granted = committed(0, epoch=2)
    Checker().take_all(
        [declared(), TEN, FAULT, handed_out(0), acked(0), granted, committed(1), again]
    )


def test_of_what_is_damaged_nothing_is_wanted_and_what_was_read_before_may_be_handed_out() -> None:
    Checker().take_all(
        [
            declared(),
            stored(0, 0),
            committed(0, epoch=1),
            Damaged(1, S, 0, 2),
            handed_out(0),
            unpublished(0, SequenceTooOld),
            published(0, 0, repeated=True),
            Passed(2, G, S, 0, 2),
            committed(2),
            Ended(9),
        ]
    )


@pytest.mark.parametrize(
    ("group", "event"),
    [(declared(), Unreadable(1, S, 2, 4)), (STALLS, Damaged(1, S, 2, 4))],
)
def test_a_group_may_stay_before_what_cannot_be_read(group: Declared, event: Event) -> None:
    handed: list[Event] = [handed_out(0), handed_out(1), acked(0), acked(1)]
    Checker().take_all([group, TEN, event, *handed, committed(2), Ended(9)])


def test_what_the_machine_took_may_be_stored_again_elsewhere() -> None:
    Checker().take_all(
        [
            stored(0, 0, durability="os"),
            stored(2, 1, durability="os"),
            published(0, 0),
            Lost(1, S, 2, 9),
            stored(9, 1, durability="os"),
            published(9, 1),
        ]
    )


def test_a_refused_sequence_may_be_used_for_another_frame() -> None:
    Checker().take_all([unpublished(0, DiskFull), stored(0, 0), published(0, 0)])


def test_of_groups_and_streams_that_are_gone_nothing_is_wanted_any_more() -> None:
    Checker().take_all([declared(), TEN, Destroyed(1, G), Ended(9)])
    Checker().take_all([declared(), TEN, Gone(1, S), Ended(9)])


def test_a_file_is_judged_by_the_exit_code_and_the_violation_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "history.jsonl"
    write_history(path, [declared(), TEN, handed_out(0)])
    assert main([str(path)]) == 0
    assert capsys.readouterr().out == ""
    write_history(path, [declared(), TEN, handed_out(10)])
    assert main([str(path)]) == 1
    assert capsys.readouterr().out.startswith("S7: ")


def test_a_file_that_holds_no_history_is_an_error_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    path.write_text("{}")
    with pytest.raises(SystemExit, match="2"):
        main([str(path)])
