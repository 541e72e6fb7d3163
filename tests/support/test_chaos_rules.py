"""Each rule of a chaos run, broken by the shortest lines that break it, and kept by similar
ones."""

from itertools import islice

import pytest

from dss_sim.groups.violation import Violation
from support.chaos_faults import strikes
from support.chaos_rules import Line, Said, check_rests, check_turns

SECOND_NS = 1_000_000_000


def line(event: str, at_s: float, offset: int = 0, *, epoch: int = 1, **facts: object) -> Line:
    place = {"stream": "t/0/0", "grant_epoch": epoch, "offset": offset}
    return {"event": event, "at_ns": round(at_s * SECOND_NS), **place, **facts}


def handed(at_s: float, offset: int = 0, *, epoch: int = 1, key: str = "k") -> Line:
    return line("record", at_s, offset, epoch=epoch, payload=f"{key} {offset}")


def refused(at_s: float, offset: int = 0, *, delay_s: float = 0.0) -> Line:
    return line("nakked", at_s, offset, delay_ms=round(delay_s * 1_000))


def durable(at_s: float, *, asked_s: float, epoch: int = 1) -> Line:
    return line("durable", at_s, epoch=epoch, asked_at_ns=round(asked_s * SECOND_NS))


EARLY: list[tuple[str, Said]] = [
    (
        "to the same member under the same grant",
        {"ann": [handed(0), refused(1, delay_s=2), handed(2)]},
    ),
    (
        "to another, though a later ack was said to be durable",
        {
            "ann": [handed(0), refused(1, delay_s=2), durable(1.5, asked_s=1.2)],
            "bob": [handed(2, epoch=2)],
        },
    ),
    (
        "to the same member under another grant",
        {"ann": [refused(1, delay_s=2), durable(1.5, asked_s=1.2), handed(2, epoch=2)]},
    ),
]

IN_TIME: list[tuple[str, Said]] = [
    ("when its time has come", {"ann": [handed(0), refused(1, delay_s=2), handed(3)]}),
    (
        "to another, where nobody was told that anything is durable",
        {"ann": [refused(1, delay_s=2)], "bob": [handed(2, epoch=2)]},
    ),
    (
        "to another, where what is durable was asked for before",
        {"ann": [refused(1, delay_s=2), durable(1.5, asked_s=0.9)], "bob": [handed(2, epoch=2)]},
    ),
    (
        "to another, whose grant is not the one of which anything was told",
        {
            "ann": [refused(1, delay_s=2), durable(1.5, asked_s=1.2, epoch=3)],
            "bob": [handed(2, epoch=2)],
        },
    ),
    ("after a short delay, which ends with the grant", {"ann": [refused(1, delay_s=0.5)], "bob": [
        handed(1.1, epoch=2)]}),
]  # fmt: skip


@pytest.mark.parametrize(("what", "said"), EARLY, ids=[what for what, _ in EARLY])
def test_what_rests_and_comes_too_early_is_found(what: str, said: Said) -> None:
    with pytest.raises(Violation, match=r"rests: .* before its time"):
        check_rests(said)


@pytest.mark.parametrize(("what", "said"), IN_TIME, ids=[what for what, _ in IN_TIME])
def test_what_comes_in_time_is_right(what: str, said: Said) -> None:
    check_rests(said)


OUT_OF_TURN: list[tuple[str, list[Line]]] = [
    ("still handles 0", [handed(0), handed(1, 1)]),
    ("are to come again", [handed(0), refused(1), handed(2, 1)]),
]

IN_TURN: list[tuple[str, list[Line]]] = [
    ("one by one", [handed(0), line("acked", 1), handed(2, 1)]),
    ("the refused one first", [handed(0), refused(1), handed(2), line("acked", 3), handed(4, 1)]),
    ("of two keys", [handed(0), handed(1, 1, key="other")]),
    ("under two grants", [handed(0), refused(1), handed(2, 1, epoch=2)]),
    ("one below a refused one", [handed(0, 5), refused(1, 5), handed(2, 3)]),
]


@pytest.mark.parametrize(("what", "lines"), OUT_OF_TURN, ids=[what for what, _ in OUT_OF_TURN])
def test_what_is_handled_out_of_turn_is_found(what: str, lines: list[Line]) -> None:
    with pytest.raises(Violation, match=f"turns: .*{what}"):
        check_turns({"ann": lines})


@pytest.mark.parametrize(("what", "lines"), IN_TURN, ids=[what for what, _ in IN_TURN])
def test_what_is_handled_in_turn_is_right(what: str, lines: list[Line]) -> None:
    check_turns({"ann": lines})


def test_a_seed_draws_the_same_faults_each_time() -> None:
    one, other, again = strikes(1, 4), strikes(2, 4), strikes(1, 4)
    first = list(islice(one, 50))
    assert first == list(islice(again, 50))
    assert first != list(islice(other, 50))
