"""Made-up client values, as a dashboard receives them.

Invariant: the same each time: no clock, no chance.
"""

from collections.abc import Iterable
from dataclasses import replace
from math import sin

from dss_api.v1 import (
    daemon_pb2,
    groups_pb2,
    jobs_pb2,
    operations_pb2,
    schedules_pb2,
    topics_pb2,
)
from dss_client import (
    DaemonStatus,
    ErrorCount,
    Event,
    Group,
    Held,
    Job,
    JobChunk,
    KeyCount,
    Operation,
    OperationPlan,
    PeerHeld,
    QueueEntry,
    Rates,
    Reason,
    SessionSummary,
    StorageTopic,
    Stuck,
    Topic,
    TopicSummary,
    Verdict,
    WatchedGrant,
    WatchedLag,
    WatchedMember,
    WatchKey,
    WatchUpdate,
)
from dss_client.changes import Change
from dss_client.group_values import Fates
from dss_client.job_values import ChunkResult, SourceRange
from dss_client.operation_values import StreamPlan
from dss_client.schedules import Schedule, ScheduleRun
from dss_client.watch import WatchedValue
from dssctl.top.model.picture import (
    Happened,
    Listed,
    Picture,
    Stands,
    Stood,
    Ticked,
    Told,
    Updated,
    step,
)
from support.blank_values import blank

NOW_MS = 1_795_320_403_000
"""2026-11-22T04:06:43Z"""

PAYMENTS = "payments-settle@payments/#"
ORDERS = "orders-index@orders/#"


UNDRIVEN = "Nobody drives night for 23h50m; 3 of 40 chunks are published."
_HEALTH = {"stalled": "problem", "rebalancing": "attention"}


def group(name: str, filter: str = "orders/#", **fields: object) -> Group:
    """A healthy group, except for the given fields."""
    well = blank(
        Group, groups_pb2.Group, group_id=1, name=name, filter=filter, kind="shared",
        start="earliest", created_at_ms=NOW_MS - 41 * 86_400_000, state="active", borrowers=2,
        streams=4, lag_exact=True, leader_epoch=3,
        health=_HEALTH.get(str(fields.get("state")), "healthy"),
        leader_since_ms=NOW_MS - 60_000, ack_wait_ms=30_000, protocol="borrow", on_damage="pass",
        fates=Fates(91_204, 0, 0, 0, 0), revision=7,
    )  # fmt: skip
    health = {"health": "attention"} if fields.get("paused") else {}
    return replace(well, **health, **fields)  # type: ignore[arg-type]


def grant(of: str, stream: str, client: str = "c-03", **fields: object) -> WatchedGrant:
    """A stream that is lent."""
    state = "granted" if client else "free"
    lent = WatchedGrant(of, stream, state, client, 5, NOW_MS - 323_000, "", "")
    return replace(lent, **fields)  # type: ignore[arg-type]


def lag(of: str, stream: str, behind: int, end: int = 90_000) -> WatchedLag:
    """How far behind a group is."""
    oldest_us = (NOW_MS - 842_000) * 1_000 if behind else None
    return WatchedLag(of, stream, end - behind, end, behind, True, oldest_us)


def member(of: str, client: str, streams: int = 2) -> WatchedMember:
    """A member."""
    return WatchedMember(of, client.encode().hex().ljust(32, "0"), client, streams, NOW_MS - 9_000)


def session(client: str, state: str = "connected") -> SessionSummary:
    """A session."""
    peer = "unix: python, pid 41" if state == "connected" else ""
    return SessionSummary(client, state, NOW_MS - 9_000, 300, 2, 0, "local:ana", peer)


def operation(number: int, subject: str, **fields: object) -> Operation:
    """An operation that is done."""
    done = blank(
        Operation, operations_pb2.Operation, number=number, operation_id=f"id-{number}",
        kind="offsets.rewind", subject=subject, state="done", summary="rewind to -15m",
        reason="TKT-12", principal="local:ana", origin="unix: dssctl, pid 77",
        applied_at_ms=NOW_MS - 120_000, ended_at_ms=NOW_MS - 118_000, revision=8, change="{}",
        undoable=True, streams_done=4,
    )  # fmt: skip
    return replace(done, **fields)  # type: ignore[arg-type]


def event(number: int, sentence: str, **fields: object) -> Event:
    """An event."""
    at_ms = NOW_MS - 60_000 + number * 1_000
    told = Event(number, at_ms, "member.gone", "info", PAYMENTS, sentence, {}, 1, at_ms)
    return replace(told, **fields)  # type: ignore[arg-type]


def status(**fields: object) -> DaemonStatus:
    """A daemon that serves."""
    serving = blank(
        DaemonStatus, daemon_pb2.DaemonStatus,
        version="0.1.0", pid=4242, started_at_ms=NOW_MS - 1_051_200_000, data_dir="/var/lib/dssd",
        listening=("unix:/run/dssd.sock",), state="serving", topics=2, streams=12,
        groups=6, sessions=4, sessions_waiting=1, log_bytes=42 << 30, disk_free_bytes=311 << 30,
        sqlite_version="3.45", boot_id="b",
        held=Held(12, 4_096, 31, 4_096, 3 << 20, 256 << 20),
        peers=(PeerHeld("pid 41", 1, 2, 1, 0),), now_us=NOW_MS * 1_000,
        disk_size_bytes=500 << 30, open_files=64, open_files_max=65_536, sessions_max=65_536,
        producers=12, producers_max=250_000,
    )  # fmt: skip
    return replace(serving, **fields)  # type: ignore[arg-type]


def topic(name: str, partitions: int, **fields: object) -> TopicSummary:
    """A topic."""
    storage = StorageTopic(1, 0, partitions, partitions, False, ())
    described = blank(
        Topic, topics_pb2.Topic, topic_id=1, name=name, patterns=(f"{name}/#",), router="block",
        durability="sync", topic_epoch=1, storage_topics=(storage,), retention_ms=604_800_000,
        created_at_ms=NOW_MS - 41 * 86_400_000, revision=1,
    )  # fmt: skip
    return replace(TopicSummary(described, 1_204_000, 9 << 30), **fields)  # type: ignore[arg-type]


def schedule(name: str, **fields: object) -> Schedule:
    """A schedule whose last run was done."""
    last = ScheduleRun(
        3, NOW_MS - 3_600_000, "cron", "done", 1, NOW_MS - 3_600_000, NOW_MS - 3_598_000, None, 4,
        "12 files, none damaged", "", 1,
    )  # fmt: skip
    nightly = blank(
        Schedule, schedules_pb2.Schedule, name=name, task="scrub", cron="0 3 * * *",
        time_zone="UTC", overlap="skip", catch_up_ms=3_600_000, timeout_ms=600_000, retries=2,
        backoff_ms=30_000, created_at_ms=NOW_MS, revision=1, state="idle",
        next_at_ms=NOW_MS + 777_000, last=last,
    )  # fmt: skip
    return replace(nightly, **fields)  # type: ignore[arg-type]


def job(name: str, **fields: object) -> Job:
    """A replay that is running."""
    driven = blank(
        Job, jobs_pb2.Job, job_id=len(name), name=name, kind="replay", engine="local",
        state="active", source="orders", target="copies", filter="orders/eu/#", hops_max=4,
        chunks=40, published=17, records=170_000, bytes=300 << 20, epoch=2,
        driver="local engine, host7, pid 41", driver_lives=True, said='{"records": 170000}',
        said_at_ms=NOW_MS - 2_000, created_at_ms=NOW_MS - 300_000, revision=3,
    )  # fmt: skip
    return replace(driven, **fields)  # type: ignore[arg-type]


def chunk(number: int, records: int | None = None) -> JobChunk:
    """A chunk of a manifest, published if its records are given."""
    start = number * 12_000
    result = None
    if records is not None:
        written = {0: (number * 10_000, number * 10_000 + records)} if records else {}
        result = ChunkResult(written, records, records * 180, NOW_MS * 1_000, "")
    return JobChunk(
        number=number, ranges=(SourceRange("orders/0/0", 1, 0, start, start + 12_000),), input="",
        records_planned=12_000, bytes_planned=32 << 20, result=result,
        published_at_ms=None if result is None else NOW_MS - (40 - number) * 1_000,
    )  # fmt: skip


def dead_letters() -> tuple[tuple[ErrorCount, ...], tuple[KeyCount, ...], tuple[QueueEntry, ...]]:
    """The failed records of a group: by error, by key, and as records."""
    now_us = NOW_MS * 1_000
    said = (
        ("b6732b224435d6df", "refused", "ValueError", "no price for 3", 4_812),
        ("a92ef103d7bc3498", "rejected", "Reject", "no customer 12", 37),
        ("", "died", "", "", 2),
    )
    errors = tuple(
        ErrorCount(name, cause, kind, text, count, now_us - 4_000_000, now_us - 9_000_000_000,
                   "orders/0/3", 17)
        for name, cause, kind, text, count in said
    )  # fmt: skip
    keys = tuple(
        KeyCount(key, 40 - at, now_us - 4_000_000, now_us - 9_000_000_000, "orders/0/3", 17 + at,
                 "refused", "ValueError", "no price for 3", "b6732b224435d6df")
        for at, key in enumerate((b"ida", b"leo", None))
    )  # fmt: skip
    entries = tuple(
        QueueEntry(
            "orders/0/3", 17 + at, "dead", at, "orders/eu", b"ida", 14, 5, 0, "refused",
            "ValueError", "no price for 3", "b6732b224435d6df", "anna", now_us - 9_000_000_000,
            NOW_MS - 90_000, now_us - 4_000_000 * (at + 1), 0, b'{"price": null}',
            (("trace", b"t-9"),),
        )
        for at in range(3)
    )  # fmt: skip
    return errors, keys, entries


def key_of(value: WatchedValue) -> WatchKey:
    """The key of a value in a watch."""
    named = {
        Group: ("groups", ""), WatchedMember: ("members", "borrower_id"),
        WatchedGrant: ("grants", "stream"), WatchedLag: ("lags", "stream"),
        Event: ("events", "number"), Operation: ("operations", "number"),
        SessionSummary: ("sessions", "client_id"), Job: ("jobs", "name"),
    }  # fmt: skip
    topic, name = named[type(value)]
    if isinstance(value, Group):
        return WatchKey(topic, f"{value.name}@{value.filter}", "")
    return WatchKey(topic, getattr(value, "group", ""), str(getattr(value, name)))


def update(*values: WatchedValue, anew: bool = False, complete: bool = True) -> Updated:
    """An update of a watch."""
    return Updated(WatchUpdate(anew, tuple((key_of(each), each) for each in values), (), complete))


def after(items: Iterable[Told], picture: Picture | None = None) -> Picture:
    """The state that items lead to."""
    picture = picture or Picture()
    for item in items:
        picture = step(picture, item)
    return picture


def busy(seconds: int = 90) -> list[Told]:
    """A daemon in the middle of the day: one group lags more and more, one is paused, one idle."""
    told: list[Told] = [
        Happened((event(1, "billing was created", severity="info", subject="billing@orders/#"),)),
        Stood(status()),
        Listed(
            (topic("orders", 8), topic("payments", 4)),
            (schedule("night-scrub"), schedule("lag", paused=True, state="paused")),
        ),
        update(*_standing(), anew=True),
        Stands((), (Verdict("problem", "jobs.driver", UNDRIVEN, ("dssctl jobs drive night",)),)),
    ]
    for second in range(seconds):
        told.append(Ticked(NOW_MS - (seconds - 1 - second) * 1_000))
        told.append(update(*_groups_at(second, seconds), _job_at(second)))
    return told


def _job_at(second: int) -> Job:
    """The replay `eu-again`, which publishes a chunk every nine seconds."""
    published = 7 + second // 9
    return job(
        "eu-again",
        published=published,
        records=published * 10_000,
        bytes=published * (18 << 20),
        rate_bytes_s=8 << 20,
    )


def _groups_at(second: int, of: int) -> list[Group]:
    wave = sin(second / 9)
    behind = 61_204 - (of - second) * 640
    oldest_us = (NOW_MS - 842_000) * 1_000
    return [
        group("payments-settle", "payments/#", state="rebalancing", borrowers=3, lag=behind,
              oldest_unacked_us=oldest_us, arrivals=Rates(2_100 + 90 * wave, 2_000.0),
              acks=Rates(1_460 - 60 * wave, 1_900.0)),
        group("orders-index", lag=19_811 - second * 31, streams=8, oldest_unacked_us=oldest_us,
              arrivals=Rates(4_000 + 400 * wave, 4_000.0), acks=Rates(4_300 + 200 * wave, 4_100.0),
              drain_ms=66_000),
        group("audit-sink", lag=88, paused=True, oldest_unacked_us=oldest_us),
    ]  # fmt: skip


def _standing() -> list[WatchedValue]:
    behind = [9_812, 8_740, 0, 42]
    found: list[WatchedValue] = [
        *_groups_at(0, 90),
        group("billing", state="stalled", state_reason="its disk cannot be read", lag=61),
        group("search-feed", arrivals=Rates(310, 300), acks=Rates(310, 300)),
        group("ledger-tail", "payments/#", state="idle", borrowers=0, leader_epoch=0),
        session("c-03"), session("c-17", "detached"), session("c-05"), session("ui"),
        operation(1, ORDERS), operation(2, PAYMENTS, state="running", streams_waiting=3,
                                        streams_done=1, kind="groups.rebalance", ended_at_ms=None),
        job("audit-orders", kind="audit", target="", state="done", published=40,
            created_at_ms=NOW_MS - 900_000, ended_at_ms=NOW_MS - 9_000, driver_lives=False),
        job("night", kind="export", target="", epoch=1, driver_lives=False, published=3,
            created_at_ms=NOW_MS - 86_400_000),
        event(2, "member c-17 is gone; its 4 streams go to others", severity="warning"),
        event(3, "operation 2, groups.rebalance, was applied", code="operation.applied"),
    ]  # fmt: skip
    for number, each in enumerate(behind):
        stream = f"payments/0/{number}"
        found += [
            grant(PAYMENTS, stream, ("c-03", "", "c-05", "c-05")[number]),
            lag(PAYMENTS, stream, each),
        ]
    found += [grant(ORDERS, f"orders/0/{n}", "c-03") for n in range(8)]
    found += [lag(ORDERS, f"orders/0/{n}", n * 700) for n in range(8)]
    found += [member(PAYMENTS, "c-03", 1), member(PAYMENTS, "c-05"), member(ORDERS, "c-03", 8)]
    return found


def stuck(stream: str = "orders/0/3", of: str = ORDERS) -> Stands:
    """A stream whose record is refused again and again."""
    told = "The record at 2 failed 6 times: it was refused, or its ack wait ran out."
    reason = Reason("failing", told, "dssctl records skip", "c-03", None, None, 0, 2)
    return Stands((Stuck(of, stream, reason, 22, 4_000),))


def plan(change: Change, **fields: object) -> OperationPlan:
    """The plan of a rewind."""
    made = OperationPlan(
        change, "offsets.rewind", PAYMENTS, 7, "rewind to 2026-11-22T03:31:43Z",
        tuple(StreamPlan(f"payments/0/{n}", 900, 600 - n, 300 + n, 0, True, False, "c-03")
              for n in range(4)),
        (), ("1206 records come again", "the order of a key is kept"), ("c-03", "c-05"), True, "",
        NOW_MS + 86_400_000, False, NOW_MS,
    )  # fmt: skip
    return replace(made, **fields)  # type: ignore[arg-type]
