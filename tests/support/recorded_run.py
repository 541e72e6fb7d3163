"""A run of real processes as its participants saw it, turned into a history and judged.

Producers report what they send and what was acknowledged; members report what they were lent and
handed, what they acknowledged and what became durable; the test reports whom it killed, and at the
end the contents of the log and the progress of the group. Whoever observes a fact stamps it, in
nanoseconds of the monotonic clock that all processes of a machine share: a hand-out right before
user code goes on with the record, an ack before it is given, a durable one after its answer. The
history has the order of the stamps, with two exceptions, because some facts are reported late:

- *Ends.* The first report of a record shows that the stream has it: the producer's ack, or a
  member's hand-out, which may be faster. This cannot hide a phantom record: at the end each report
  is compared by payload with the log, and the log with what was sent, and all payloads differ.
  Records that the log lost show in its last end.
- *Grants.* A frozen member learns of a grant long after it was stored, perhaps after the next one.
  So a grant's commit gets the time of the first notice of it or of any later one, and cannot have
  happened after that. A grant may be reported again; the first notice has what was stored with it.

Invariant: every report is kept; nothing is judged before `Recorded.judge`. This module knows no
client, only the types of values that clients return and the lines of `tests/scenarios/programs`.
"""

from collections import Counter, defaultdict
from collections.abc import Awaitable, Iterable, Iterator, Mapping
from pathlib import Path
from time import monotonic_ns
from typing import Any, NamedTuple, Protocol

from dss_core.errors import GrantNotHeld, OutcomeUnknown
from dss_core.progress import Progress, normalised
from dss_sim.groups.checker import Checker, Violation
from dss_sim.groups.history import (
    AckDurable,
    Acked,
    Appended,
    Committed,
    Declared,
    Disturbed,
    Ended,
    Event,
    HandedOut,
    read_history,
    write_history,
)

SYNC_EVERY = 100
"""One of this many acks waits until it is durable."""

Place = tuple[str, int]
"""Stream and offset."""


class Stored(Protocol):
    """A producer's ack."""

    @property
    def stream(self) -> str:
        """As TOPIC/ORDINAL/PARTITION."""

    @property
    def offset(self) -> int:
        """The offset of the first record."""

    @property
    def records(self) -> int:
        """How many records there are, consecutive ones."""


class Delivered(Protocol):
    """A record that a member in this process was handed."""

    payload: bytes
    """Different from all others."""

    @property
    def offset(self) -> int:
        """Its place in the stream."""

    @property
    def stream(self) -> str:
        """As TOPIC/ORDINAL/PARTITION."""

    @property
    def grant_epoch(self) -> int:
        """The epoch of the grant under which it was handed out."""

    @property
    def attempt(self) -> int:
        """How often it is known to have been handed out."""

    @property
    def redelivered(self) -> bool:
        """Whether it may have been seen before."""

    def ack(self, *, sync: bool = False) -> Awaitable[None]:
        """Acknowledge it; with ``sync``, wait until that is durable."""


class GrantDecided(Protocol):
    """A notice that a stream was lent to a member in this process."""

    @property
    def stream(self) -> str:
        """As TOPIC/ORDINAL/PARTITION."""

    @property
    def grant_epoch(self) -> int:
        """Rises with each loan."""

    @property
    def floor(self) -> int:
        """Every record below it is acknowledged."""


class Standing(Protocol):
    """The final state of a stream of the group, as the daemon reports it."""

    @property
    def stream(self) -> str:
        """As TOPIC/ORDINAL/PARTITION."""

    @property
    def grant_epoch(self) -> int:
        """The epoch of the last grant."""

    @property
    def progress(self) -> Progress:
        """What is acknowledged."""


class _Grant(NamedTuple):
    """One grant of a stream."""

    stream: str
    epoch: int


class _Notice(NamedTuple):
    at_ns: int
    floor: int


class Recorded:
    """What is known at the end of a test about a topic and about one group that reads it, if there
    is one."""

    def __init__(self, group: str = "", *, by_key: bool = False) -> None:
        """If a group is ordered, the first word of a payload is its key."""
        self._group = group
        self._by_key = by_key
        self._facts: list[tuple[int, Event]] = []
        self._notices: dict[_Grant, _Notice] = {}
        """The first notice of each grant."""
        self._sent: list[bytes] = []
        self._seen: list[tuple[str, Place, bytes]] = []
        """By whom, where, and what."""
        self._acked: defaultdict[tuple[str, _Grant], list[tuple[int, int]]] = defaultdict(list)
        """When, and the offset, by member and grant."""
        self._acks = 0

    # Told by the test

    def declare(self, streams: Iterable[str]) -> None:
        """The group begins, at the first record of each of these streams."""
        starts = tuple((stream, 0) for stream in streams)
        at_ns = monotonic_ns()
        self._facts.append((at_ns, Declared(at_ns // 1_000, self._group, starts, 0, self._by_key)))

    def disturb(self, what: str) -> None:
        """Something happens that may make records come twice."""
        at_ns = monotonic_ns()
        self._facts.append((at_ns, Disturbed(at_ns // 1_000, what)))

    # Told by producers

    def send(self, *payloads: bytes) -> None:
        """These are about to be published, and will be acknowledged before the end."""
        self._sent.extend(payloads)

    def stored(self, ack: Stored, payload: bytes | None = None) -> None:
        """An ack came just now; with the payload if it is known which record it is for."""
        at_ns = monotonic_ns()
        end = ack.offset + ack.records
        self._facts.append((at_ns, Appended(at_ns // 1_000, ack.stream, end)))
        if payload is not None:
            self._seen.append(("its producer", (ack.stream, ack.offset), payload))

    # Told by members in this process

    def granted(self, notice: GrantDecided) -> None:
        """A member was lent a stream; can be used as ``on_grant``."""
        self._granted(monotonic_ns(), _Grant(notice.stream, notice.grant_epoch), notice.floor)

    def handed_out(self, member: str, record: Delivered) -> None:
        """A member was handed a record just now."""
        grant = _Grant(record.stream, record.grant_epoch)
        self._handed_out(
            monotonic_ns(),
            member,
            grant,
            record.offset,
            record.payload,
            record.attempt,
            record.redelivered,
        )

    async def acknowledge(self, member: str, record: Delivered) -> None:
        """Acknowledge a record; one of `SYNC_EVERY` waits until that is durable, if it becomes
        so."""
        grant = _Grant(record.stream, record.grant_epoch)
        self._ack(monotonic_ns(), member, grant, record.offset)
        self._acks += 1
        if self._acks % SYNC_EVERY:
            await record.ack()
            return
        asked_at_ns = monotonic_ns()
        try:
            await record.ack(sync=True)
        except (GrantNotHeld, OutcomeUnknown):
            # The member was not told that it is durable, so nothing is promised.
            return
        self._durable(monotonic_ns(), member, grant, asked_at_ns)

    # Told by members that are processes of their own

    def heard(self, member: str, lines: Iterable[Mapping[str, Any]]) -> None:
        """Take the output of a member process, line by line."""
        for line in lines:
            match line:
                case {"event": "granted", "at_ns": at_ns, "floor": floor}:
                    self._granted(at_ns, _grant_in(line), floor)
                case {"event": "record", "at_ns": at_ns, "offset": offset, "payload": payload}:
                    attempt, redelivered = line["attempt"], line["redelivered"]
                    grant, payload = _grant_in(line), payload.encode()
                    self._handed_out(at_ns, member, grant, offset, payload, attempt, redelivered)
                case {"event": "acked", "at_ns": at_ns, "offset": offset}:
                    self._ack(at_ns, member, _grant_in(line), offset)
                case {"event": "durable", "at_ns": at_ns}:
                    # A member that does not report when it asked gives no other ack while it waits.
                    asked_at_ns = line.get("asked_at_ns", at_ns)
                    self._durable(at_ns, member, _grant_in(line), asked_at_ns)

    # The end

    def judge(
        self, path: Path, log: Mapping[Place, bytes], standings: Iterable[Standing] = ()
    ) -> None:
        """Write the history, and judge it: every send was answered, every record acknowledged.

        ``log`` has all records of the topic; ``standings`` has one for each stream of a group.

        Raises:
            Violation: an invariant does not hold; its note says where the history is.
        """
        write_history(path, self._history(log, list(standings)))
        try:
            Checker().take_all(read_history(path))
            self._check_payloads(log)
        except Violation as violation:
            violation.add_note(f"python -m {Checker.__module__} {path}")
            raise

    def _granted(self, at_ns: int, grant: _Grant, floor: int) -> None:
        known = self._notices.get(grant)
        if known is None or at_ns < known.at_ns:
            self._notices[grant] = _Notice(at_ns, floor)

    def _handed_out(
        self,
        at_ns: int,
        member: str,
        grant: _Grant,
        offset: int,
        payload: bytes,
        attempt: int,
        redelivered: bool,
    ) -> None:
        place = grant.stream, offset
        self._seen.append((member, place, payload))
        key = payload.split()[0].decode() if self._by_key else None
        handed = (self._group, *place, member, grant.epoch, attempt, redelivered, key)
        self._facts.append((at_ns, HandedOut(at_ns // 1_000, *handed)))

    def _ack(self, at_ns: int, member: str, grant: _Grant, offset: int) -> None:
        self._acked[member, grant].append((at_ns, offset))
        event = Acked(at_ns // 1_000, self._group, grant.stream, offset, member)
        self._facts.append((at_ns, event))

    def _durable(self, at_ns: int, member: str, grant: _Grant, asked_at_ns: int) -> None:
        """The acks of a grant that were given by a time are durable."""
        given = self._acked[member, grant]
        acked = normalised((offset, offset + 1) for at, offset in given if at <= asked_at_ns)
        event = AckDurable(at_ns // 1_000, self._group, grant.stream, acked, member)
        self._facts.append((at_ns, event))

    def _history(self, log: Mapping[Place, bytes], standings: list[Standing]) -> Iterator[Event]:
        facts = sorted((*self._commits(), *self._facts), key=lambda fact: fact[0])
        yield from _with_ends(event for _, event in facts)
        at_us = monotonic_ns() // 1_000
        ends = {each.stream: 0 for each in standings}
        for stream, offset in log:
            ends[stream] = max(ends.get(stream, 0), offset + 1)
        yield from (Appended(at_us, stream, end) for stream, end in ends.items())
        for each in standings:
            floor, ranges = each.progress.floor, each.progress.ranges
            yield Committed(at_us, self._group, each.stream, floor, ranges, each.grant_epoch)
        yield Ended(at_us)

    def _commits(self) -> list[tuple[int, Event]]:
        """The commits of grants, those of a stream in order, each as early as it is known."""
        commits: list[tuple[int, Event]] = []
        latest: dict[str, int] = {}
        for grant, notice in sorted(self._notices.items(), reverse=True):
            at_ns = min(notice.at_ns, latest.get(grant.stream, notice.at_ns))
            latest[grant.stream] = at_ns
            said = (self._group, grant.stream, notice.floor, (), grant.epoch)
            commits.append((at_ns, Committed(at_ns // 1_000, *said)))
        return commits[::-1]

    def _check_payloads(self, log: Mapping[Place, bytes]) -> None:
        sent, stored = Counter(self._sent), Counter(log.values())
        if stored != sent:
            extra, lost = list((stored - sent).items())[:3], list((sent - stored).items())[:3]
            raise Violation("S7", f"never sent so often: {extra}; not in the log: {lost}")
        for who, place, payload in self._seen:
            if log.get(place) != payload:
                raise Violation("S7", f"{who} saw {payload!r} at {place}: {log.get(place)!r}")


def _grant_in(line: Mapping[str, Any]) -> _Grant:
    return _Grant(line["stream"], line["grant_epoch"])


def _with_ends(events: Iterable[Event]) -> Iterator[Event]:
    """The events, with each end inserted at its first report."""
    ends: defaultdict[str, int] = defaultdict(int)
    for event in events:
        match event:
            case Appended(stream=stream, end=end):
                if end <= ends[stream]:
                    continue
                ends[stream] = end
            case HandedOut(at_us=at_us, stream=stream, offset=offset) if offset >= ends[stream]:
                ends[stream] = offset + 1
                yield Appended(at_us, stream, offset + 1)
        yield event
