"""Changes, to the wire and back."""

import json
from dataclasses import MISSING, fields
from datetime import UTC, datetime, timedelta
from typing import Any, get_args, get_type_hints

import pytest

from dss_api.v1 import operations_pb2
from dss_client import changes
from dss_client._changes_on_wire import change_from_wire, change_to_wire
from dss_client.job_values import JobInput, SourceRange
from dss_client.offsets import StreamOffsets
from dss_client.operations import change_of, document_of
from dss_core import changes as core
from dss_core.errors import DssError, IllegalArgument, IllegalTime
from dss_core.progress import Progress

OFFSETS = StreamOffsets("orders", 0, 3, 4, Progress(7, ((9, 12), (20, 21))), 30)
MOVE = changes.StreamMove("orders/0/3", "", "b", "", "00ff")


def _short(kind: type[Any]) -> changes.Change:
    """A change in which only what has to be said is said."""
    hints = get_type_hints(kind)
    needed = [each.name for each in fields(kind) if each.default is each.default_factory is MISSING]
    change: changes.Change = kind(*[{str: "g", int: 7}[hints[name]] for name in needed])
    return change


UNUSUAL = {core.MoveCursors, core.ImportOffsets}
EVERY_KIND: tuple[changes.Change, ...] = (
    *(_short(kind) for kind in get_args(core.Change) if kind not in UNUSUAL),
    changes.MoveCursors("g", "rewind", to="earliest"),
    changes.MoveCursors("g", "skip", to="latest", streams=("orders/0/3", "orders/0/1")),
    changes.MoveCursors("g", "seek", to=12),
    changes.MoveCursors("g", "seek", by=-12),
    changes.MoveCursors("g", "skip", by=timedelta(hours=1, milliseconds=5)),
    changes.MoveCursors("g", "seek", to="@1795000000.000001"),
    changes.MoveCursors("g", "seek"),
    changes.MoveCursors("g", "seek", targets=(changes.StreamTarget("orders/0/3", 5, 12),)),
    changes.ImportOffsets("g", (OFFSETS,)),
    changes.SkipRecords("g", "orders/0/3", 12, 2),
    changes.SkipRecords("g", "orders/0/3", 1, 1, (changes.RecordSpan("orders/0/4", 7, 3),)),
    changes.PauseGroup("g", until_ms=0),
    changes.Rebalance("g", moves_max=0, moves=(MOVE,)),
    changes.Evict("g", "b", grace_ms=0, ban_ms=60_000),
    changes.EditGroup("g", ack_wait_ms=30_000),
    changes.EditGroup("g", on_damage="stall"),
    changes.EditGroup("g", max_deliver=3, backoff_ms=(0, 1), queue_records=1, queue_bytes=2),
    changes.RedriveDeadLetters("g", "abc", b"", "orders/0/3", 0, rate=5),
    changes.RedriveDeadLetters("g"),
    changes.DiscardDeadLetters("g", lanes=(changes.LaneRanges("orders/0/3", 7, ((1, 3), (5, 6))),)),
    changes.EditTopic("orders", retention_ms=1, durability="os"),
    changes.EditTopic("orders", no_retention_ms=True, no_retention_bytes=True),
    changes.EditTopic("orders", retention_bytes=0),
    changes.RemoveTopic("orders", force=True),
    changes.CloseSession("b", b"session"),
    changes.AdoptSessions("token:a", ("b", "c-*"), "loopback"),
    changes.AdoptSessions("token:a", sessions=(changes.NamedSession("b", b"session"),)),
    changes.RunTask("scrub", {"topic": "orders"}, timeout_ms=60_000),
    changes.CreateSchedule(
        "s", "scrub", "0 3 * * *", {"a": "b"}, "Europe/Berlin", 0, "queue", 1, 2, 0, 3, paused=True
    ),
    changes.EditSchedule("s", retries=0),
    changes.EditSchedule("s", "@daily", {"a": "b"}, ("c",), "UTC", 0, "allow", 1, 2, 3, 4),
    changes.CreateJob("j", "replay", source="orders", target="copies", start_us=0, end_us=9),
    changes.CreateJob("j", "backfill", "spark", target="copies", inputs=(JobInput("f", 1, 2),)),
    changes.CreateJob(
        "j",
        "export",
        source="orders",
        filter="orders/+",
        rate_bytes_s=1,
        chunk_bytes=2,
        hops_max=3,
        allow_loop=True,
        params="{}",
        ranges=(SourceRange("orders/0/1", 4, 1, 5, 6),),
    ),
)


def test_every_kind_of_the_wire_has_its_change() -> None:
    encoded = {change_to_wire(change).WhichOneof("change") for change in EVERY_KIND}
    assert encoded == {field.name for field in operations_pb2.Change.DESCRIPTOR.fields}


@pytest.mark.parametrize("change", EVERY_KIND, ids=lambda change: type(change).__name__)
def test_what_was_encoded_is_decoded_as_the_same_change(change: changes.Change) -> None:
    assert change_from_wire(change_to_wire(change)) == change


@pytest.mark.parametrize("change", EVERY_KIND, ids=lambda change: type(change).__name__)
def test_a_document_is_json_and_gives_the_same_change(change: changes.Change) -> None:
    assert change_of(json.loads(json.dumps(document_of(change)))) == change


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("=12", changes.MoveCursors("g", "seek", to=12)),
        ("now", changes.MoveCursors("g", "seek", to="latest")),
        ("2026-11-20T08:00:00.25Z", changes.MoveCursors("g", "seek", to="@1795161600.250000")),
        (
            datetime(2026, 11, 20, 8, tzinfo=UTC),
            changes.MoveCursors("g", "seek", to="@1795161600.000000"),
        ),
    ],
)
def test_a_target_is_decoded_in_its_plain_spelling(
    written: changes.Target, meant: changes.Change
) -> None:
    assert change_from_wire(change_to_wire(changes.MoveCursors("g", "seek", to=written))) == meant


@pytest.mark.parametrize(
    ("broken", "condition"),
    [
        (changes.MoveCursors("g", "back", to="earliest"), IllegalArgument),
        (changes.MoveCursors("g", "seek", to="earliest", by=1), IllegalArgument),
        (changes.MoveCursors("g", "seek", to="soon"), IllegalTime),
        (changes.MoveCursors("g", "seek", to="=٣"), IllegalTime),
        (changes.MoveCursors("g", "seek", to=-1), IllegalArgument),
        (changes.MoveCursors("g", "seek", by=1 << 64), IllegalArgument),
        (changes.SkipRecords("g", "orders/0/3", -1), IllegalArgument),
        (changes.Undo(1 << 64), IllegalArgument),
        (changes.EditGroup("g", on_damage="ignore"), IllegalArgument),
        (changes.TransferGrant("\udcff", "s", "b"), IllegalArgument),
    ],
    ids=str,
)
def test_a_value_that_breaks_its_rule_is_refused_before_it_is_sent(
    broken: changes.Change, condition: type[DssError]
) -> None:
    with pytest.raises(condition):
        change_to_wire(broken)


@pytest.mark.parametrize(
    "document",
    [{}, {"no_such_change": {}}, {"undo": {"number": "x"}}, {"undo": 7}, {"undo": {"more": 1}}],
    ids=str,
)
def test_what_is_no_document_of_a_change_is_refused(document: dict[str, object]) -> None:
    with pytest.raises(IllegalArgument):
        change_of(document)


def test_what_cannot_be_sent_is_said_without_what_else_is_in_the_change() -> None:
    change = changes.CreateSchedule(
        "s", "lag-check", "* * * * *", {"url": "http://u:p@h"}, retries=-1
    )
    with pytest.raises(IllegalArgument) as refused:
        change_to_wire(change)
    assert refused.value.message == "this change is not allowed: Value out of range: -1."
