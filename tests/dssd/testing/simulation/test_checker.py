"""Each invariant, broken by the shortest history that breaks it."""

from pathlib import Path

import pytest

from dssd.testing.simulation.checker import Checker, Violation, main
from dssd.testing.simulation.history import (
    AckDurable,
    Acked,
    Appended,
    Born,
    Committed,
    Declared,
    Destroyed,
    Disturbed,
    Ended,
    Event,
    Gone,
    HandedOut,
    Led,
    write_history,
)

G, S = "billing", "orders/0/0"


def declared(start: int = 0, every: int = 0) -> Declared:
    return Declared(0, G, ((S, start),), every)


def handed_out(
    offset: int, *, epoch: int = 1, attempt: int = 1, redelivered: bool = False, to: str = "ann"
) -> HandedOut:
    return HandedOut(1, G, S, offset, to, epoch, attempt, redelivered)


def acked(offset: int) -> Acked:
    return Acked(2, G, S, offset, "ann")


def committed(floor: int, *ranges: tuple[int, int], epoch: int = -1) -> Committed:
    return Committed(3, G, S, floor, ranges, epoch)


TEN = Appended(0, S, 10)
FAULT = Disturbed(0, "crash")

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
