"""What operators make of cursors: each rule of the judge, broken by the shortest history."""

import pytest

from dss_core.progress import Ranges
from dss_sim.groups.checker import Checker, Violation
from dss_sim.groups.history import (
    AckDurable,
    Acked,
    Appended,
    Committed,
    Declared,
    Ended,
    Event,
    HandedOut,
    Moved,
)

G, S = "billing", "orders/0/0"
BEGUN: list[Event] = [Declared(0, G, ((S, 0),), 0), Appended(0, S, 4), Committed(1, G, S, 0, (), 1)]
FROM_TWO: Ranges = ((2, 1 << 62),)


def consumed(*offsets: int, epoch: int = 1, again: bool = False) -> list[Event]:
    """Handed out and acknowledged."""
    return [
        event
        for offset in offsets
        for event in (
            HandedOut(2, G, S, offset, "ann", epoch, 1, again),
            Acked(2, G, S, offset, "ann", epoch),
        )
    ]


def stored(floor: int, *ranges: tuple[int, int], epoch: int = -1) -> Committed:
    return Committed(3, G, S, floor, ranges, epoch)


def moved(
    before: int,
    after: int,
    *,
    dropped: Ranges = (),
    added: Ranges = (),
    number: int = 7,
    undoes: int = 0,
    epoch: int = 3,
) -> Moved:
    return Moved(4, G, S, number, undoes, dropped, added, before, (), after, (), epoch)


REWOUND: list[Event] = [
    *BEGUN, *consumed(0, 1, 2, 3), stored(4), moved(4, 2, dropped=FROM_TWO), stored(2, epoch=3),
]  # fmt: skip
SKIPPED: list[Event] = [
    *BEGUN, *consumed(0), stored(1), moved(1, 3, added=((0, 3),)), stored(3, epoch=3),
]  # fmt: skip
UNDONE = moved(3, 1, dropped=((0, 3),), added=((0, 1),), number=8, undoes=7, epoch=5)

BROKEN: list[tuple[str, str, list[Event]]] = [
    ("S22", "a move that fences nobody", [*REWOUND[:-2], moved(4, 2, dropped=FROM_TWO, epoch=1)]),
    (
        "S21",
        "what is reopened and not handed out again",
        [
            *REWOUND,
            *consumed(3, epoch=3, again=True),
            Acked(5, G, S, 2, "ann", 3),
            stored(4),
            Ended(9),
        ],
    ),
    (
        "S4",
        "a grant of before, after a later one",
        [*REWOUND, *consumed(2, epoch=3, again=True), *consumed(3, epoch=1, again=True)[:1]],
    ),
    (
        "S2",
        "an ack under a grant of before that counts",
        [*REWOUND, Acked(5, G, S, 2, "ann", 1), stored(3)],
    ),
    ("S2", "an ack of before that counts", [*REWOUND, stored(4)]),
    ("S21", "more than what was asked", [*REWOUND[:-2], moved(4, 1, dropped=FROM_TWO)]),
    ("S21", "less than what was asked", [*REWOUND[:-2], moved(4, 3, dropped=FROM_TWO)]),
    ("S2", "a move that loses progress", [*BEGUN, *consumed(0), stored(1), moved(0, 0)]),
    ("S4", "again without a mark", [*REWOUND, *consumed(2, epoch=3)[:1]]),
    (
        "S10",
        "an attempt that counts those of before",
        [*REWOUND, HandedOut(5, G, S, 2, "ann", 3, 2, True)],
    ),
    (
        "S23",
        "an undo that leaves what it covered",
        [*SKIPPED, moved(3, 3, added=((0, 1),), number=8, undoes=7, epoch=5)],
    ),
    (
        "S23",
        "an undo that reopens what was acknowledged",
        [*SKIPPED, moved(3, 0, dropped=((0, 3),), number=8, undoes=7, epoch=5)],
    ),
]


@pytest.mark.parametrize(("name", "history"), [(name, each) for name, _, each in BROKEN],
                         ids=[what for _, what, _ in BROKEN])  # fmt: skip
def test_what_breaks_a_rule_is_found(name: str, history: list[Event]) -> None:
    checker = Checker()
    checker.take_all(history[:-1])
    with pytest.raises(Violation, match=f"^{name}: "):
        checker.take(history[-1])


def test_a_rewind_whose_records_came_again_holds() -> None:
    again = consumed(2, 3, epoch=3, again=True)
    Checker().take_all([*REWOUND, *again, stored(4), Ended(9)])


def test_what_a_rewind_reopened_and_nobody_got_again_is_found() -> None:
    checker = Checker()
    checker.take_all([*REWOUND, *consumed(2, epoch=3, again=True)])
    assert checker.unsettled() == [(G, S, 2, 4)]


def test_what_a_skip_passed_need_not_be_handed_out_until_that_is_undone() -> None:
    Checker().take_all([*SKIPPED, *consumed(3, epoch=3), stored(4), Ended(9)])
    undone = [*SKIPPED, UNDONE, stored(1, epoch=5)]
    again = consumed(1, 2, 3, epoch=5)
    Checker().take_all([*undone, *again, stored(4), Ended(9)])


def test_an_ack_that_is_told_to_be_durable_late_says_nothing_of_what_was_reopened() -> None:
    late = AckDurable(5, G, S, ((0, 4),), "ann", 1)
    again = consumed(2, 3, epoch=3, again=True)
    Checker().take_all([*REWOUND, late, *again, stored(4), Ended(9)])
