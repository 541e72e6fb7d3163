"""Two rules that a history does not show, judged by the output of a group's members.

    rests   what was refused with a delay comes to nobody before its time: neither under the same
            grant, nor to anybody else once a later ack of that grant was said to be durable
    turns   under `run`, of the records of a key one at a time is handled under one grant, and none
            while an earlier one is still to come again

It reads the lines of `tests/scenarios/programs/chaos_member.py`, and knows only that the lines of
all members have times of one clock. Other rules are judged from a history, by
`support.recorded_run`.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from dss_sim.groups.violation import Violation

REST_MS_MIN = 1_000
"""A shorter delay ends with the grant."""
CLOCKS_MS_MAX = 5
"""Rounding to milliseconds on both sides, and the difference of two clocks of one machine."""

Line = Mapping[str, Any]
Said = Mapping[str, Sequence[Line]]
"""All lines of each member, in order."""


@dataclass(frozen=True, slots=True)
class _Rest:
    """A refused record and its delay."""

    stream: str
    offset: int
    member: str
    grant_epoch: int
    at_ns: int
    until_ns: int
    for_all_ns: int | None
    """When its member was told that a later ack of the grant is durable."""

    def forbids(self, member: str, line: Line) -> bool:
        """Whether this hand-out of the record is too early."""
        at_ns: int = line["at_ns"]
        if not self.at_ns < at_ns < self.until_ns:
            return False
        if (member, line["grant_epoch"]) == (self.member, self.grant_epoch):
            return True
        return self.for_all_ns is not None and at_ns > self.for_all_ns


def check_rests(said: Said) -> None:
    """Judge the rests of a group.

    Raises:
        Violation: a record came before its time.
    """
    rests: defaultdict[tuple[str, int], list[_Rest]] = defaultdict(list)
    for member, lines in said.items():
        for rest in _rests(member, lines):
            rests[rest.stream, rest.offset].append(rest)
    for member, line in _handed(said):
        for rest in rests[line["stream"], line["offset"]]:
            if rest.forbids(member, line):
                left_ms = (rest.until_ns - line["at_ns"]) / 1e6
                raise Violation(
                    "rests", f"{left_ms:.0f} ms before its time: {rest}; {member}: {line}"
                )


def _rests(member: str, lines: Sequence[Line]) -> Iterator[_Rest]:
    durable: defaultdict[tuple[str, int], list[Line]] = defaultdict(list)
    for line in lines:
        if line["event"] == "durable":
            durable[line["stream"], line["grant_epoch"]].append(line)
    for line in lines:
        if line["event"] == "nakked" and line["delay_ms"] >= REST_MS_MIN:
            grant = line["stream"], line["grant_epoch"]
            later = [each["at_ns"] for each in durable[grant] if _covers(each, line)]
            until_ns = line["at_ns"] + (line["delay_ms"] - CLOCKS_MS_MAX) * 1_000_000
            place = line["stream"], line["offset"]
            told_ns = min(later, default=None)
            yield _Rest(*place, member, line["grant_epoch"], line["at_ns"], until_ns, told_ns)


def _covers(durable: Line, nakked: Line) -> bool:
    asked_at_ns: int = durable["asked_at_ns"]
    refused_at_ns: int = nakked["at_ns"]
    return asked_at_ns > refused_at_ns


def _handed(said: Said) -> Iterator[tuple[str, Line]]:
    for member, lines in said.items():
        for line in lines:
            if line["event"] == "record":
                yield member, line


class _Turn:
    """The state of one key under one grant."""

    __slots__ = ("handling", "refused")

    def __init__(self) -> None:
        self.handling: int | None = None
        self.refused: set[int] = set()


def check_turns(said: Said) -> None:
    """Judge the order of keys in a group whose members `run`; a key is a payload's first word.

    Raises:
        Violation: two records of a key were handled at once, or one before an earlier one was done.
    """
    for member, lines in said.items():
        turns: defaultdict[tuple[str, int, str], _Turn] = defaultdict(_Turn)
        keys: dict[tuple[str, int], str] = {}
        for line in _about_records(lines):
            stream, offset = line["stream"], line["offset"]
            if line["event"] == "record":
                keys[stream, offset] = line["payload"].split()[0]
            turn = turns[stream, line["grant_epoch"], keys[stream, offset]]
            _take_turn(member, line, turn)


def _about_records(lines: Iterable[Line]) -> Iterator[Line]:
    about = ("record", "acked", "nakked")
    return iter(sorted((line for line in lines if line["event"] in about), key=itemgetter("at_ns")))


def _take_turn(member: str, line: Line, turn: _Turn) -> None:
    offset: int = line["offset"]
    if line["event"] != "record":
        turn.handling = None
        if line["event"] == "nakked":
            turn.refused.add(offset)
        return
    if turn.handling is not None:
        raise Violation("turns", f"{member} still handles {turn.handling}: {line}")
    if waiting := [each for each in turn.refused if each < offset]:
        raise Violation("turns", f"{waiting} of its key are to come again: {member}: {line}")
    turn.handling = offset
    turn.refused.discard(offset)
