"""Reports of observers, in the forms of real runs, and the histories made of them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from time import monotonic_ns
from typing import Any

import pytest

from dss_client._subscription_options import GrantNotice
from dss_core.errors import GrantNotHeld
from dss_core.progress import Progress
from dss_sim.groups.checker import Violation
from dss_sim.groups.history import (
    AckDurable,
    Appended,
    Committed,
    Event,
    HandedOut,
    read_history,
)
from support.recorded_run import SYNC_EVERY, Place, Recorded

S = "t/0/0"
TWO = (b"a", b"b")
LOG: dict[Place, bytes] = {(S, 0): b"a", (S, 1): b"b"}
DONE = 2


@dataclass(frozen=True, slots=True)
class Ack:
    stream: str
    offset: int
    records: int = 1


@dataclass(frozen=True, slots=True)
class Standing:
    stream: str
    grant_epoch: int
    progress: Progress


@dataclass(slots=True)
class Record:
    """A record that a member in this process was handed."""

    offset: int
    payload: bytes
    stream: str = S
    grant_epoch: int = 1
    attempt: int = 1
    redelivered: bool = False
    too_late: bool = False

    async def ack(self, *, sync: bool = False) -> None:
        if sync and self.too_late:
            raise GrantNotHeld(grant=self.stream)


class Lines:
    """The output of a member process, one line in each nanosecond."""

    def __init__(self, at_ns: int) -> None:
        self.at_ns = at_ns
        self.said: list[dict[str, Any]] = []

    def granted(self, epoch: int, floor: int = 0) -> "Lines":
        return self._say("granted", grant_epoch=epoch, floor=floor)

    def handed(self, offset: int, *, epoch: int = 1, attempt: int = 1) -> "Lines":
        self._say(
            "record",
            offset=offset,
            payload=TWO[offset].decode(),
            grant_epoch=epoch,
            attempt=attempt,
            redelivered=attempt > 1,
        )
        return self

    def acked(self, offset: int, *, epoch: int = 1) -> "Lines":
        return self._say("acked", offset=offset, grant_epoch=epoch)

    def durable(self, *, epoch: int = 1) -> "Lines":
        return self._say("durable", grant_epoch=epoch)

    def _say(self, event: str, **facts: object) -> "Lines":
        self.at_ns += 1
        self.said.append({"event": event, "at_ns": self.at_ns, "stream": S, **facts})
        return self


@pytest.fixture
def recorded() -> Recorded:
    """A group of one stream, and two records that somebody is about to send."""
    recorded = Recorded("g")
    recorded.declare([S])
    recorded.send(*TWO)
    return recorded


def judged(
    recorded: Recorded,
    path: Path,
    *,
    log: Mapping[Place, bytes] = LOG,
    floor: int = DONE,
    epoch: int = 2,
) -> list[Event]:
    """The history, if no rule is broken."""
    recorded.judge(path, log, [Standing(S, epoch, Progress(floor))])
    return list(read_history(path))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.jsonl"


def test_a_run_in_which_all_went_well_is_accepted(recorded: Recorded, path: Path) -> None:
    recorded.stored(Ack(S, 0, 2))
    lines = Lines(monotonic_ns()).granted(1).handed(0).acked(0).handed(1).acked(1).durable()
    recorded.heard("ann", lines.said)
    events = judged(recorded, path)
    durable = [event.acked for event in events if isinstance(event, AckDurable)]
    assert durable == [((0, 2),)]


def test_a_handout_before_the_producers_ack_tells_the_end(recorded: Recorded, path: Path) -> None:
    recorded.heard("ann", Lines(monotonic_ns()).handed(0).acked(0).handed(1).acked(1).said)
    recorded.stored(Ack(S, 0), b"a")
    recorded.stored(Ack(S, 1), b"b")
    events = judged(recorded, path)
    ends = [event.end for event in events if isinstance(event, Appended)]
    assert ends == [1, 2, 2]


@pytest.mark.parametrize(
    ("log", "text"),
    [
        ({(S, 0): b"a"}, "the end was 2 before"),
        ({(S, 0): b"b", (S, 1): b"a"}, "ann saw"),
        ({(S, 0): b"a", (S, 1): b"invented"}, "never sent so often"),
        ({(S, 0): b"a", (S, 1): b"b", ("t/0/1", 0): b"b"}, "never sent so often"),
    ],
    ids=["lost", "something else", "never sent", "twice"],
)
def test_what_was_handed_out_is_compared_with_the_log(
    recorded: Recorded, path: Path, log: dict[Place, bytes], text: str
) -> None:
    recorded.heard("ann", Lines(monotonic_ns()).handed(0).acked(0).handed(1).acked(1).said)
    with pytest.raises(Violation, match=text) as found:
        judged(recorded, path, log=log, floor=len([place for place in log if place[0] == S]))
    assert found.value.invariant == "S7"
    assert str(path) in found.value.__notes__[0]


def test_what_a_producer_was_told_is_compared_with_the_log(path: Path) -> None:
    recorded = Recorded()
    recorded.send(*TWO)
    recorded.stored(Ack(S, 0), b"b")
    with pytest.raises(Violation, match="its producer saw"):
        recorded.judge(path, LOG)


def test_the_order_is_that_of_the_stamps_not_of_the_telling(recorded: Recorded, path: Path) -> None:
    start_ns = monotonic_ns()
    recorded.disturb("a member froze")
    later = Lines(start_ns + 100).granted(2, floor=1).handed(1, epoch=2).acked(1, epoch=2)
    recorded.heard("bob", later.said)
    recorded.heard("ann", Lines(start_ns).granted(1).handed(0).acked(0).said)
    members = [event.member for event in judged(recorded, path) if isinstance(event, HandedOut)]
    assert members == ["ann", "bob"]


def test_a_member_that_hands_out_under_a_lost_grant_is_found(
    recorded: Recorded, path: Path
) -> None:
    start_ns = monotonic_ns()
    recorded.disturb("a member froze")
    recorded.heard("ann", Lines(start_ns).granted(1).said)
    recorded.heard("bob", Lines(start_ns + 100).granted(2).handed(0, epoch=2).said)
    recorded.heard("ann", Lines(start_ns + 200).handed(1, epoch=1).said)
    with pytest.raises(Violation, match="an older grant still hands out"):
        judged(recorded, path)


def test_a_grant_that_is_heard_of_late_was_stored_before_its_successor(
    recorded: Recorded, path: Path
) -> None:
    start_ns = monotonic_ns()
    lines = Lines(start_ns).granted(2).handed(0, epoch=2).acked(0, epoch=2)
    recorded.heard("bob", lines.handed(1, epoch=2).acked(1, epoch=2).said)
    # It was frozen, and reports only now what it was lent before; then it gets a grant once more.
    recorded.heard("ann", Lines(start_ns + 500).granted(1).said)
    recorded.heard("bob", Lines(start_ns + 600).granted(2, floor=1).said)
    events = judged(recorded, path)
    epochs = [(event.grant_epoch, event.floor) for event in events if isinstance(event, Committed)]
    assert epochs == [(1, 0), (2, 0), (2, 2)]
    assert isinstance(events[1], Committed)


def test_progress_that_nobody_acknowledged_is_found(recorded: Recorded, path: Path) -> None:
    recorded.heard("ann", Lines(monotonic_ns()).handed(0).acked(0).handed(1).said)
    with pytest.raises(Violation, match="nobody acknowledged 1"):
        judged(recorded, path)


def test_a_record_that_comes_after_its_durable_ack_is_found(recorded: Recorded, path: Path) -> None:
    recorded.disturb("the daemon is killed")
    lines = Lines(monotonic_ns()).handed(0).acked(0).durable()
    recorded.heard("ann", lines.handed(0, epoch=2, attempt=2).said)
    with pytest.raises(Violation, match="its acknowledgement was durable"):
        judged(recorded, path)


def test_what_was_acknowledged_behind_the_question_is_not_durable_by_its_answer(
    recorded: Recorded, path: Path
) -> None:
    start_ns = monotonic_ns()
    lines = Lines(start_ns).handed(0).acked(0).handed(1).acked(1).durable()
    lines.said[-1]["asked_at_ns"] = lines.said[1]["at_ns"]
    recorded.heard("ann", lines.said)
    durable = [each.acked for each in judged(recorded, path) if isinstance(each, AckDurable)]
    assert durable == [((0, 1),)]


def test_in_a_group_by_key_the_first_word_of_a_payload_is_the_key(path: Path) -> None:
    recorded = Recorded("g", by_key=True)
    recorded.declare([S])
    recorded.send(*TWO)
    recorded.heard("ann", Lines(monotonic_ns()).handed(1).acked(1).handed(0).acked(0).said)
    keys = [each.key for each in judged(recorded, path) if isinstance(each, HandedOut)]
    assert keys == ["b", "a"]


async def test_a_member_in_this_process_tells_what_it_was_told(
    recorded: Recorded, path: Path
) -> None:
    recorded.granted(GrantNotice(S, 1, 0))
    for record in (Record(0, b"a"), Record(1, b"b")):
        recorded.handed_out("ann", record)
        # Repeated until one of the acks waits for its answer.
        for _ in range(math.ceil(SYNC_EVERY / 2)):
            await recorded.acknowledge("ann", record)
    durable = [each.acked for each in judged(recorded, path) if isinstance(each, AckDurable)]
    assert durable == [((0, 2),)]


async def test_an_ack_whose_answer_never_came_promises_nothing(
    recorded: Recorded, path: Path
) -> None:
    for record in (Record(0, b"a", too_late=True), Record(1, b"b", too_late=True)):
        recorded.handed_out("ann", record)
        for _ in range(math.ceil(SYNC_EVERY / 2)):
            await recorded.acknowledge("ann", record)
    assert not [each for each in judged(recorded, path) if isinstance(each, AckDurable)]
