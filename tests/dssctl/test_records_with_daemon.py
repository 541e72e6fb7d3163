"""``dssctl records`` and ``dssctl leaders`` against a daemon process."""

import json
from typing import Any

import pytest

from support.dssctl_call import Completed, Daemon, items, ok


def refused(done: Completed, exit_code: int, code: str) -> bytes:
    assert done.returncode == exit_code, done.stderr.decode()
    assert f"error {code}: ".encode() in done.stderr
    return done.stderr


def line(key: str, payload: object, subject: str = "orders/eu", **more: object) -> bytes:
    fields = {"key": key, "payload": payload, "subject": subject, **more}
    return json.dumps(fields).encode() + b"\n"


LINES = (
    line("ann", {"id": 1}),
    line("bob", "error: timed out", headers=[{"name": "trace", "value": "t1"}]),
    line("ann", {"id": 2}, subject="orders/us"),
    b'{"key": "cleo", "payload_base64": "/wAB", "subject": "orders/eu"}\n',
    line("ann", {"id": 3}),
)


@pytest.fixture(scope="module")
def stocked(daemon: Daemon) -> Daemon:
    """A topic of two streams with five records."""
    ok(daemon.dssctl("topics", "create", "orders", "--partitions", "2"))
    for each in LINES:
        ok(daemon.dssctl("produce", "orders", "--input", "jsonl", stdin=each))
    return daemon


def peek(daemon: Daemon, *arguments: str) -> list[dict[str, Any]]:
    return items(daemon.dssctl("records", "peek", "orders", *arguments, "-o", "json"))


def find(daemon: Daemon, *arguments: str) -> list[dict[str, Any]]:
    return items(daemon.dssctl("records", "find", "orders", *arguments, "-o", "json"))


def payloads(found: list[dict[str, Any]]) -> list[object]:
    return [each["payload"] for each in found]


def stream_of_ann(daemon: Daemon) -> str:
    return str(find(daemon, "--key", "ann")[0]["stream"])


def test_the_newest_records_of_all_streams_come_in_the_order_of_their_time(
    stocked: Daemon,
) -> None:
    assert payloads(peek(stocked)) == [
        '{"id":1}', "error: timed out", '{"id":2}', None, '{"id":3}',
    ]  # fmt: skip
    assert payloads(peek(stocked, "--last", "2")) == [None, '{"id":3}']
    assert payloads(peek(stocked, "-n", "1")) == ['{"id":3}']


def test_records_from_a_place_on_are_shown(stocked: Daemon) -> None:
    assert payloads(peek(stocked, "--at", "earliest", "-n", "2")) == [
        '{"id":1}',
        "error: timed out",
    ]
    (_, second, _) = find(stocked, "--key", "ann")
    at = second["appended_at"]
    assert payloads(peek(stocked, "--at", at, "-n", "1")) == ['{"id":2}']
    assert peek(stocked, "--at", "+1h") == []
    stream = stream_of_ann(stocked)
    from_there = peek(stocked, "--stream", stream, "--offset", str(second["offset"]))
    assert '{"id":2}' in payloads(from_there)
    assert '{"id":1}' not in payloads(from_there)
    assert peek(stocked, "--stream", stream, "--at", at, "--as", "json")[0]["payload"] == {"id": 2}


def test_a_table_shows_bytes_in_hex_and_no_control_character(stocked: Daemon) -> None:
    table = ok(stocked.dssctl("records", "peek", "orders"))
    assert b"hex:ff0001" in table
    assert b"PAYLOAD" in table
    assert b"\x00" not in table
    for format_ in ("wide", "jsonl", "yaml", "csv", "name"):
        assert ok(stocked.dssctl("records", "peek", "orders", "-o", format_))


def test_a_place_that_does_not_fit_is_refused(stocked: Daemon) -> None:
    refused(stocked.dssctl("records", "peek", "orders", "--offset", "0"), 2, "DSS1010")
    refused(stocked.dssctl("records", "peek", "none"), 5, "DSS2001")
    refused(stocked.dssctl("records", "peek", "orders/0/9"), 5, "DSS2011")
    two = stocked.dssctl("records", "peek", "orders", "--last", "1", "--at", "earliest")
    assert two.returncode == 2
    beyond = stocked.dssctl("records", "peek", "orders/0/0", "--offset", "99")
    refused(beyond, 5, "DSS2041")


def test_records_are_found_by_key_payload_subject_header_and_time(stocked: Daemon) -> None:
    assert payloads(find(stocked, "--key", "ann")) == ['{"id":1}', '{"id":2}', '{"id":3}']
    assert payloads(find(stocked, "--match", "(?i)ERROR.*out")) == ["error: timed out"]
    assert payloads(find(stocked, "--subject", "orders/us")) == ['{"id":2}']
    assert payloads(find(stocked, "--header", "trace")) == ["error: timed out"]
    assert payloads(find(stocked, "--header", "trace=t1")) == ["error: timed out"]
    assert find(stocked, "--header", "trace=t2") == []
    assert len(find(stocked, "--since", "-1h")) == 5
    assert find(stocked, "--until", "-1h") == []
    assert payloads(find(stocked, "--key", "ann", "--match", "2", "--since", "-1h")) == ['{"id":2}']


def test_a_search_says_how_far_it_looked_and_how_to_go_on(stocked: Daemon) -> None:
    stream = stream_of_ann(stocked)
    whole = stocked.dssctl("records", "find", "orders", "--match", "id")
    assert b"note: looked at 5 of 5 offsets, 3 match\n" in whole.stderr
    assert b"go on" not in whole.stderr
    part = stocked.dssctl("records", "find", stream, "--key", "ann", "-n", "1", "-o", "json")
    (first,) = items(part)
    assert first["payload"] == '{"id":1}'
    rest = f"--stream {stream} --offset {first['offset'] + 1}"
    assert f"go on: the same with {rest}".encode() in part.stderr
    gone_on = find(stocked, "--key", "ann", *rest.split())
    assert payloads(gone_on) == ['{"id":2}', '{"id":3}']


def test_a_search_that_cannot_be_done_is_refused(stocked: Daemon) -> None:
    assert stocked.dssctl("records", "find", "orders").returncode == 2
    refused(stocked.dssctl("records", "find", "orders", "--match", "("), 2, "DSS1010")
    refused(stocked.dssctl("records", "find", "orders", "--header", "=x"), 2, "DSS1010")


def test_what_was_found_can_be_published_again(stocked: Daemon) -> None:
    lines = ok(stocked.dssctl("records", "find", "orders", "--since", "-1h", "-o", "jsonl"))
    ok(stocked.dssctl("topics", "create", "copies", "--pattern", "copies/#"))
    done = stocked.dssctl(
        "produce", "copies", "--input", "jsonl", stdin=lines.replace(b'"orders/', b'"copies/')
    )
    ok(done)
    copies = items(stocked.dssctl("records", "peek", "copies", "-o", "json"))
    assert sorted(str(each["payload_bytes"]) for each in copies) == ["16", "3", "8", "8", "8"]


def test_one_record_is_shown_whole_with_its_groups_and_what_to_do(stocked: Daemon) -> None:
    ok(stocked.dssctl("groups", "create", "billing@orders/#", "--start", "earliest"))
    (found,) = find(stocked, "--header", "trace")
    place = (found["stream"], str(found["offset"]))
    page = stocked.dssctl("records", "get", *place)
    assert b"error: timed out" in ok(page)
    assert b"billing@orders/#" in page.stdout
    assert b"no-members" in page.stdout
    assert b"next: dssctl consume" in page.stderr
    item = json.loads(ok(stocked.dssctl("records", "get", *place, "-o", "json")))["item"]
    assert item["groups"][0]["code"] == "no-members"
    assert "content" not in item
    refused(stocked.dssctl("records", "get", place[0], "999"), 5, "DSS2041")


def test_a_leader_is_listed_while_its_group_has_members(stocked: Daemon) -> None:
    ok(stocked.dssctl("groups", "create", "led@orders/#", "--start", "earliest"))
    assert items(stocked.dssctl("leaders", "ls", "-o", "json")) == []
    ok(stocked.dssctl("consume", "orders/#", "--group", "led", "-n", "1"))
    (leader,) = items(stocked.dssctl("leaders", "ls", "-o", "json"))
    assert (leader["group"], leader["state"], leader["streams"]) == ("led@orders/#", "leading", 2)
    assert leader["since"] is not None
    every = items(stocked.dssctl("leaders", "ls", "--all", "-o", "json"))
    assert [each["state"] for each in every if each["group"] == "billing@orders/#"] == ["none"]
    page = stocked.dssctl("leaders", "describe", "led")
    assert b"GRANTS" in ok(page)
    assert b"next: dssctl groups describe 'led@orders/#'" in page.stderr
