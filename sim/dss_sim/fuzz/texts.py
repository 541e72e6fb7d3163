"""Parsers of texts that people and clients write: names, filters, times, addresses, conditions."""

import ipaddress
import json
from collections.abc import Callable, Mapping
from itertools import starmap

from dss_bulk.audits.params import AuditParams
from dss_bulk.backfill_work import BackfillParams
from dss_bulk.export_work import ExportParams
from dss_bulk.replay_params import ReplayParams
from dss_bulk.transform_params import TransformParams
from dss_client._credentials import credentials_of
from dss_client._endpoint import resolve
from dss_client.jetstream import _subjects
from dss_client.jetstream.config import ConsumerConfig, from_metadata, to_metadata
from dss_client.jetstream.tokens import AckSubject
from dss_core.filters import SubscriptionFilter, TopicFilter, check_name, check_subject
from dss_core.ids import StreamName
from dss_core.redaction import masked, masked_json
from dss_core.times import parse_span_ms, parse_time
from dss_sim.fuzz.parser import Parser, text
from dssctl.permission_options import permissions_of
from dssd.access.permissions import Demand, Role, permission_of, read_stored, stored
from dssd.addresses import Clients, TcpAddress, parse_address
from dssd.machines.start_point import parse_start
from dssd.questions.selection import GroupSelection
from dssd.schedules.cron import fire_times

NOW_US = 1_700_000_000_000_000
TIMES_ASKED = 3
"""Of a schedule, one behind the other."""

_NAMES = (b"/", b"#", b"+", b"$share/", b"$queue/", b"$dlq/", b"..", b"%u", b"%c", b"@", b"*")


def _examples(*texts: str) -> Callable[[], list[bytes]]:
    return lambda: [each.encode() for each in texts]


def _filter(given: str) -> None:
    parsed = TopicFilter.parse(given)
    assert TopicFilter.parse(parsed.text) == parsed
    assert parsed.covers(parsed)
    assert parsed.overlaps(parsed)
    assert parsed.matches("$dlq/x") <= given.startswith("$"), "wildcards reach no internal topic"


def _address(given: str) -> None:
    found = parse_address(given)
    if isinstance(found, TcpAddress) and not found.policy.tls:
        assert found.host == "localhost" or ipaddress.ip_address(found.host).is_loopback
    elif isinstance(found, TcpAddress):
        assert found.policy.clients is not Clients.ANYBODY


def _permission(given: str) -> None:
    """As the daemon reads it from the wire."""
    role, *rest = given.split(" ")
    groups = [each[1:] for each in rest if each.startswith("@")]
    made = permission_of(role, [each for each in rest if each[:1] != "@"], groups)
    assert read_stored(stored([made])) == (made,)
    assert not any(made.allows(Demand(each)) for each in Role if each not in (role, Role.READ))


def _endpoint(given: str) -> None:
    """A token goes by no way that is bare."""
    endpoint = resolve(given)
    credentials_of(endpoint, token_file="token")
    for way in endpoint.ways:
        host = way.target.rpartition(":")[0].strip("[]")
        is_private = way.tls or way.is_local or host == "localhost"
        assert is_private or ipaddress.ip_address(host).is_loopback


def _condition(given: str) -> None:
    wanted, _, order = given.partition(";")
    GroupSelection(wanted, order, NOW_US).of(())


def _cron(given: str) -> None:
    expression, _, zone = given.partition(";")
    times, at_ms = fire_times(expression, zone or "UTC"), NOW_US // 1_000
    for _ in range(TIMES_ASKED):
        found = times.next_ms(at_ms)
        assert found is None or found > at_ms
        at_ms = found or at_ms


def _jetstream_subject(given: str) -> None:
    assert _subjects.dotted(_subjects.slashed(given, wildcards=True)) == given


_RULE: Mapping[str, object] = {"topic": "t", "key": "k", "subject": None, "order": [], "types": []}
_BACKFILL: Mapping[str, object] = {"rule": _RULE, "files": [["/f", 1, 2, 3]], "rejects": None}


def _of_jobs(kind: str, read: Callable[[str], object], example: Mapping[str, object]) -> Parser:
    """What a driver is told of a job, as whoever made the job wrote it."""
    return Parser(f"parameters of {kind}", _examples(json.dumps(example)), text(read), is_json=True)


TEXTS: tuple[Parser, ...] = (
    Parser("filters", _examples("orders/+/eu/#", "#", "$dlq/1/2"), text(_filter), pieces=_NAMES),
    Parser(
        "filters of subscriptions",
        _examples("$share/billing/orders/#", "$queue/g/+", "orders/eu"),
        text(SubscriptionFilter.parse),
        pieces=_NAMES,
    ),
    Parser("subjects", _examples("orders/eu/1"), text(check_subject), pieces=_NAMES),
    Parser("names", _examples("orders", "a.b_c-1"), text(check_name), pieces=_NAMES),
    Parser("names of streams", _examples("orders/0/3"), text(StreamName.parse), pieces=_NAMES),
    Parser(
        "times",
        _examples("2026-01-02T03:04:05Z", "-1h", "now"),
        text(lambda given: parse_time(given, now_us=NOW_US)),
        pieces=(b"-", b"Z", b"+02:00", b"T", b"d", b"w", b"now"),
    ),
    Parser("spans of time", _examples("90d", "1h30m", "15s"), text(parse_span_ms)),
    Parser("points to start at", _examples("now", "earliest", "@5", "=7"), text(parse_start)),
    Parser(
        "addresses to listen at",
        _examples("127.0.0.1:0,tls,clients=certs,names=uri", "unix:/run/s", "[::1]:7233"),
        text(_address),
        pieces=(b",tls", b",clients=tokens", b"0.0.0.0", b"[::", b"]:", b"unix:", b"localhost"),
    ),
    Parser(
        "permissions",
        _examples("consume orders/# to/%u/# @billing*", "admin", "operate @*"),
        text(_permission),
        pieces=(*_NAMES, b"read", b"produce", b" "),
    ),
    Parser(
        "permissions as the tool takes them",
        _examples("consume 'orders/#' @billing*", "admin"),
        text(lambda given: permissions_of((), (), (), (given,))),
        pieces=(b"'", b'"', b"\\", b" "),
    ),
    Parser(
        "endpoints",
        _examples("dss://a.example:7233,dss://[::1]:1", "unix:/run/s", "127.0.0.1:1"),
        text(_endpoint),
        pieces=(b"dss://", b"unix:", b",", b"[", b"]", b":", b"localhost"),
    ),
    Parser(
        "conditions and orders of lists",
        _examples("lag>1000,state=stalled;-lag", "name!=billing,oldest<5m", "paused=yes;age"),
        text(_condition),
        pieces=(b">=", b"!=", b",", b"lag", b"created_at", b"health", b"1h"),
    ),
    Parser(
        "cron expressions",
        _examples("*/5 1-3 * feb sun", "0 3 29 2 *;Europe/Paris", "@daily"),
        text(_cron),
        pieces=(b"*/", b"-", b",", b"L", b"?", b"@", b";America/", b"sat-mon"),
    ),
    Parser(
        "reply subjects of JetStream",
        _examples("$JS.ACK.s.c.1.2.3.4.5", "$JS.ACK._.a.s.c.1.2.3.4.5.x"),
        text(AckSubject.parse),
        pieces=(b".", b"$JS.ACK."),
    ),
    Parser(
        "subjects of JetStream",
        _examples("orders.*.eu.>", "a.b"),
        text(_jetstream_subject),
        pieces=(b".", b">", b"*", b"/", b"#"),
    ),
    Parser(
        "consumers of JetStream in groups",
        lambda: [
            to_metadata(
                "s", ConsumerConfig(name="c", ack_wait=5.0, filter_subject="a.>"), "1"
            ).encode()
        ],
        text(from_metadata),
        pieces=(b'"config"', b'"stream"', b'"opt_start_time"', b'"deliver_policy"', b'"backoff"'),
        is_json=True,
    ),
    *starmap(
        _of_jobs,
        (
            ("replays", ReplayParams.from_json, {"subject": "a", "headers": [["h", "1"]]}),
            ("exports", ExportParams.from_json, {"folder": "/f", "topic_id": 1, "ends": {}}),
            ("backfills", BackfillParams.from_json, _BACKFILL),
            ("transforms", TransformParams.from_json, {"function": "f", "text": "", "file": "f"}),
            (
                "audits",
                lambda params: AuditParams.from_json("job", params),
                {"router": "block", "patterns": ["a/#"], "shapes": [[1, 0, 4, 1]]},
            ),
        ),
    ),
    Parser(
        "texts that a support bundle masks",
        _examples('{"a": "b@c.example 10.0.0.1 dss_xxxx"}'),
        text(lambda given: (masked(given), masked_json(json.dumps({"a": given})))),
    ),
)
