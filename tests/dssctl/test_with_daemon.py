"""Every command against a daemon process."""

import base64
import csv
import io
import json
import re
import subprocess
from typing import Protocol

import pytest

from dssctl.settings import Format
from support.proof_share import share
from support.started_program import ProgramProcess

FORMATS = sorted(set(Format) - {Format.TEMPLATE, Format.NONE, Format.HELP})
"""Those that show items as they are."""


class Done(Protocol):
    returncode: int
    stdout: bytes
    stderr: bytes


class Daemon(Protocol):
    endpoint: str

    def dssctl(self, *arguments: str, stdin: bytes = b"") -> Done: ...


def ok(done: Done) -> bytes:
    assert done.returncode == 0, done.stderr.decode()
    assert b"\x1b" not in done.stdout + done.stderr
    return done.stdout


def items(done: Done) -> list[dict[str, object]]:
    document = json.loads(ok(done))
    assert document["apiVersion"] == "dssctl/v1"
    return list(document["items"])


def refused(done: Done, exit_code: int, code: str) -> None:
    assert done.returncode == exit_code, done.stderr.decode()
    assert done.stdout == b""
    assert f"error {code}: ".encode() in done.stderr
    assert b"Traceback" not in done.stderr


def topic(daemon: Daemon, name: str, *options: str) -> str:
    ok(daemon.dssctl("topics", "create", name, *options))
    return name


def records(daemon: Daemon, topic_filter: str) -> list[dict[str, object]]:
    printed = ok(daemon.dssctl("consume", topic_filter, "--no-follow", "-o", "jsonl"))
    return [json.loads(line) for line in printed.splitlines()]


def test_a_topic_is_created_listed_described_and_removed(daemon: Daemon) -> None:
    created = daemon.dssctl("topics", "create", "life", "--partitions", "3", "-o", "json")
    assert json.loads(ok(created))["item"]["partitions"] == 3
    assert "life" in [item["name"] for item in items(daemon.dssctl("topics", "ls", "-o", "json"))]
    described = json.loads(ok(daemon.dssctl("topics", "describe", "life", "-o", "json")))
    assert described["kind"] == "Topic"
    streams = [stream["stream"] for stream in described["item"]["streams"]]
    assert streams == ["life/0/0", "life/0/1", "life/0/2"]
    removed = daemon.dssctl("topics", "rm", "life", "--yes", "-o", "json")
    item = json.loads(ok(removed))["item"]
    assert (item["name"], item["removed"]) == ("life", True)
    assert item["operation"] > 0
    refused(daemon.dssctl("topics", "describe", "life"), 5, "DSS2001")


def test_a_grown_topic_shows_its_storage_topics_and_the_streams_that_are_written_to(
    daemon: Daemon,
) -> None:
    topic(daemon, "grown", "--partitions", "2")
    ok(daemon.dssctl("produce", "grown", stdin=b"one\ntwo\n"))
    ok(daemon.dssctl("topics", "grow", "grown", "--partitions", "4", "--yes"))
    ok(daemon.dssctl("topics", "add-storage", "grown", "--partitions", "6", "--yes"))
    item = json.loads(ok(daemon.dssctl("topics", "describe", "grown", "-o", "json")))["item"]
    shown = ("storage", "partitions", "factor", "base", "state", "records")
    assert [tuple(each[field] for field in shown) for each in item["storage_topics"]] == [
        ("grown/0", 2, 1, 2, "sealed", 2),
        ("grown/1", 4, 2, 2, "producing", 0),
        ("grown/2", 6, 3, 2, "waiting", 0),
    ]
    began = [each["began_at"] for each in item["storage_topics"]]
    assert item["created_at"] == began[0] < began[1]
    assert began[2] is None
    assert (item["partitions"], len(item["streams"])) == (4, 12)
    page = ok(daemon.dssctl("topics", "describe", "grown"))
    assert b"grown/1/3" in page
    assert not {b"grown/0/0", b"grown/2/0"} & set(page.split())
    assert b"grown/0/0" in ok(daemon.dssctl("topics", "describe", "grown", "-o", "wide"))
    sealed = daemon.dssctl("consume", "--stream", "grown/0/0", "--start", "now")
    assert ok(sealed).splitlines()[1:] == []
    assert b"grown/0/0 takes no more records: that was its end" in sealed.stderr
    settled = ("topics", "create", "grown", "--if-not-exists", "--partitions")
    assert b"note: DSS2110" not in daemon.dssctl(*settled, "4").stderr
    assert b"--partitions 2 was asked for, and it has 4" in daemon.dssctl(*settled, "2").stderr


def test_the_page_of_a_group_says_how_many_of_its_streams_are_finished(daemon: Daemon) -> None:
    topic(daemon, "outgrown", "--partitions", "1")
    ok(daemon.dssctl("groups", "create", "$share/outgrowing/outgrown/#", "--start", "earliest"))
    ok(daemon.dssctl("produce", "outgrown", stdin=b"one\n"))
    ok(daemon.dssctl("topics", "grow", "outgrown", "--partitions", "3", "--yes"))
    ok(daemon.dssctl("produce", "outgrown", stdin=b"two\n"))
    ok(daemon.dssctl("consume", "outgrown/#", "--group", "outgrowing", "-n", "2"))
    page = ok(daemon.dssctl("groups", "describe", "outgrowing"))
    assert b"4 streams, 1 of them finished" in page
    item = json.loads(ok(daemon.dssctl("groups", "describe", "outgrowing", "-o", "json")))["item"]
    assert (item["streams"], "finished" in item) == (4, False)


def test_what_exists_is_a_conflict_unless_that_is_accepted(daemon: Daemon) -> None:
    topic(daemon, "twice")
    refused(daemon.dssctl("topics", "create", "twice"), 6, "DSS2002")
    again = daemon.dssctl("topics", "create", "twice", "--if-not-exists")
    ok(again)
    assert b"note: DSS2110" not in again.stderr, "nothing is asked of it"
    other = ("--partitions", "7", "--durability", "sync", "--pattern", "twice/#")
    accepted = daemon.dssctl("topics", "create", "twice", "--if-not-exists", *other, "-q")
    ok(accepted)
    differs = "--partitions 7 was asked for, and it has 1"
    told = f"The topic twice was there before and stays as it is: {differs}."
    assert accepted.stderr.decode() == f"note: DSS2110: {told}\n"


def test_what_is_gone_is_not_found_unless_that_is_accepted(daemon: Daemon) -> None:
    refused(daemon.dssctl("topics", "rm", "gone", "-y"), 5, "DSS2001")
    ok(daemon.dssctl("topics", "rm", "gone", "-y", "--if-exists"))
    refused(daemon.dssctl("groups", "describe", "gone"), 5, "DSS2004")
    ok(daemon.dssctl("groups", "rm", "gone", "-y", "--if-exists"))


def test_a_name_that_is_not_allowed_is_a_usage_error(daemon: Daemon) -> None:
    refused(daemon.dssctl("topics", "create", "no/slash"), 2, "DSS1001")
    refused(daemon.dssctl("groups", "create", "$queue/orders"), 2, "DSS1003")
    refused(daemon.dssctl("consume", "a/#/b", "--no-follow"), 2, "DSS1002")
    refused(daemon.dssctl("consume", "#", "--no-follow", "--start", "soon"), 2, "DSS1013")


def test_a_group_is_declared_with_its_protocol(daemon: Daemon) -> None:
    topic(daemon, "leased")
    ok(daemon.dssctl("groups", "create", "sets@leased/#", "--protocol", "lease"))
    described = json.loads(ok(daemon.dssctl("groups", "describe", "sets", "-o", "json")))["item"]
    assert described["protocol"] == "lease"
    assert b"PROTOCOL" in ok(daemon.dssctl("groups", "describe", "sets")).upper()
    refused(daemon.dssctl("groups", "create", "x@leased/#", "--protocol", "other"), 2, "DSS1010")


def test_a_group_is_declared_listed_described_and_removed(daemon: Daemon) -> None:
    topic(daemon, "shared", "--partitions", "2")
    ok(daemon.dssctl("produce", "shared", stdin=b"one\ntwo\n"))
    ok(daemon.dssctl("groups", "create", "team@shared/#", "--start", "earliest"))
    orders = json.loads(ok(daemon.dssctl("topics", "describe", "shared", "-o", "json")))["item"]
    assert orders["records"] == sum(each["records"] for each in orders["streams"]) == 2
    listed = {item["name"]: item for item in items(daemon.dssctl("groups", "ls", "-o", "json"))}
    team = listed["team"]
    assert team["filter"] == "shared/#"
    assert team["state"] == "idle"
    assert (team["lag"], team["lag_exact"]) == (2, True)
    assert str(team["oldest_unacked_at"]).endswith("Z")
    described = json.loads(ok(daemon.dssctl("groups", "describe", "team", "-o", "json")))["item"]
    assert [grant["stream"] for grant in described["grants"]] == ["shared/0/0", "shared/0/1"]
    ok(daemon.dssctl("groups", "rm", "team@shared/#", "-y"))
    refused(daemon.dssctl("groups", "describe", "team"), 5, "DSS2004")


def test_a_queue_that_is_named_as_a_shared_group_is_refused_with_its_right_form(
    daemon: Daemon,
) -> None:
    topic(daemon, "tasks")
    ok(daemon.dssctl("groups", "create", "$queue/work/tasks/#"))
    for mistaken in (
        ("consume", "tasks/#", "-g", "work", "-n", "1"),
        ("groups", "create", "work@tasks/#", "--if-not-exists"),
        ("groups", "describe", "$share/work/tasks/#"),
        ("groups", "rm", "$share/work/tasks/#", "-y"),
    ):
        done = daemon.dssctl(*mistaken)
        refused(done, 6, "DSS2018")
        assert b"$queue/work/tasks/#" in done.stderr
    ok(daemon.dssctl("groups", "rm", "work@tasks/#", "-y"))


def test_the_table_of_groups_has_the_columns_that_operators_look_for(daemon: Daemon) -> None:
    header = ok(daemon.dssctl("groups", "ls")).decode().splitlines()[0].split()
    assert header == [
        "NAME",
        "FILTER",
        "STATE",
        "BORROWERS",
        "STREAMS",
        "LAG",
        "OLDEST",
        "DAMAGED",
        "EPOCH",
    ]
    wide = ok(daemon.dssctl("groups", "ls", "-o", "wide")).decode().splitlines()[0].split()
    assert wide[: len(header)] == header
    assert len(wide) > len(header)


@pytest.fixture(scope="module")
def listed(daemon: Daemon) -> Daemon:
    """A daemon with something in every listing."""
    ok(daemon.dssctl("topics", "create", "formats"))
    ok(daemon.dssctl("groups", "create", "formats@formats/#"))
    return daemon


@pytest.mark.parametrize(
    ("noun", "output"),
    [
        (noun, output)
        for noun in ("topics", "groups", "grants")
        for output in (FORMATS if noun == "groups" else share([Format.TABLE, Format.JSON], FORMATS))
    ],
)
def test_every_listing_has_every_format(noun: str, output: Format, listed: Daemon) -> None:
    printed = ok(listed.dssctl(noun, "ls", "-o", output)).decode()
    assert "formats" in printed


def test_the_daemon_tells_how_it_is(daemon: Daemon) -> None:
    status = json.loads(ok(daemon.dssctl("daemon", "status", "-o", "json")))["item"]
    assert status["state"] == "serving"
    assert status["pid"] > 0
    assert b"serving" in ok(daemon.dssctl("daemon", "status"))


def test_lines_become_records_and_come_back(daemon: Daemon) -> None:
    topic(daemon, "lines")
    published = daemon.dssctl("produce", "lines", "-o", "json", stdin=b"a\n\n\xff\nlast")
    assert json.loads(ok(published))["item"]["records"] == 4
    read = records(daemon, "lines/#")
    assert [record["offset"] for record in read] == [0, 1, 2, 3]
    assert [record["payload"] for record in read] == ["a", "", None, "last"]
    assert read[2]["payload_base64"] == "/w=="
    assert read[0]["key"] is None
    assert read[0]["subject"] == "lines"


def test_what_was_consumed_can_be_produced_again(daemon: Daemon) -> None:
    topic(daemon, "trip", "--pattern", "trip/#", "--pattern", "elsewhere/#")
    originals = [
        {"payload": "p", "key": "k", "subject": "trip/a", "headers": []},
        {"payload_base64": "/wA=", "key": "", "subject": "trip"},
        {"payload": "\u001b[2J", "key": None, "headers": [{"name": "h", "value": "v"}]},
    ]
    lines = b"".join(json.dumps(each).encode() + b"\n" for each in originals)
    ok(daemon.dssctl("produce", "trip", "--input", "jsonl", stdin=lines))
    first = ok(daemon.dssctl("consume", "trip/#", "--no-follow", "-o", "jsonl"))
    ok(daemon.dssctl("produce", "trip", "--input", "jsonl", stdin=first))
    read = records(daemon, "trip/#")
    assert len(read) == 6
    fields = ("payload", "payload_base64", "key", "subject", "headers")
    for before, after in zip(read[:3], read[3:], strict=True):
        assert [before.get(name) for name in fields] == [after.get(name) for name in fields]


def test_a_broken_line_is_named_and_nothing_after_it_is_published(daemon: Daemon) -> None:
    topic(daemon, "broken")
    lines = b'{"payload": "1"}\n{"payload": "2"}\n{"payload": \n{"payload": "4"}\n'
    done = daemon.dssctl("produce", "broken", "--input", "jsonl", stdin=lines)
    refused(done, 1, "DSS1011")
    assert b"Line 3" in done.stderr
    assert b"2 records were published before that" in done.stderr
    assert [record["payload"] for record in records(daemon, "broken/#")] == ["1", "2"]


def test_a_record_that_breaks_a_rule_is_named_by_its_line(daemon: Daemon) -> None:
    topic(daemon, "rules")
    lines = b'{"payload": "1"}\n{"payload": "2", "subject": "other/a"}\n'
    done = daemon.dssctl("produce", "rules", "--input", "jsonl", stdin=lines)
    refused(done, 1, "DSS1011")
    assert b"Line 2" in done.stderr
    assert len(records(daemon, "rules/#")) == 1


def test_publishing_to_a_topic_that_is_not_there_is_not_found(daemon: Daemon) -> None:
    refused(daemon.dssctl("produce", "nowhere", stdin=b"x\n"), 5, "DSS2001")


def test_where_nothing_was_published_nothing_is_said_of_it(daemon: Daemon) -> None:
    assert b"before that" not in daemon.dssctl("produce", "nowhere", stdin=b"x\n").stderr


def test_one_record_is_counted_as_one(daemon: Daemon) -> None:
    topic(daemon, "single")
    done = daemon.dssctl("produce", "single", "--input", "jsonl", stdin=b'{"payload": "1"}\n{\n')
    assert b"note: 1 record was published before that.\n" in done.stderr


def test_a_filter_that_meets_no_topic_is_noted(daemon: Daemon) -> None:
    for command in ("consume", "ordres/#", "--no-follow"), ("groups", "create", "o@ordres/#"):
        done = daemon.dssctl(*command)
        ok(done)
        assert done.stderr.startswith(b"note: no topic matches ordres/# yet\n")


@pytest.mark.parametrize("foreign", ["orders.>", "orders/*", "orders.*.eu"])
def test_wildcards_of_other_systems_are_noted(foreign: str, daemon: Daemon) -> None:
    done = daemon.dssctl("consume", foreign, "--no-follow", "-o", "jsonl")
    assert ok(done) == b""
    noted = json.loads(done.stderr)
    assert noted["kind"] == "Note"
    assert "wildcards are +" in noted["message"]


def test_a_group_that_consuming_creates_is_noted_once(daemon: Daemon) -> None:
    topic(daemon, "noted")
    ok(daemon.dssctl("produce", "noted", stdin=b"1\n2\n"))
    consume = ("consume", "noted/#", "--group", "notes", "--start", "earliest", "-n", "1")
    first = daemon.dssctl(*consume)
    header, row = ok(first).decode().splitlines()
    assert header.split() == ["STREAM", "OFFSET", "SUBJECT", "KEY", "REDELIVERED", "PAYLOAD"]
    assert row.split()[-2:] == ["-", "1"]
    assert first.stderr == b"note: created group notes, starting earliest\n"
    second = daemon.dssctl(*consume)
    ok(second)
    assert second.stderr == b""


def test_a_number_ends_a_plain_read(daemon: Daemon) -> None:
    topic(daemon, "number")
    ok(daemon.dssctl("produce", "number", stdin=b"1\n2\n3\n"))
    printed = ok(daemon.dssctl("consume", "number/#", "-n", "2", "-o", "json"))
    assert [item["payload"] for item in json.loads(printed)["items"]] == ["1", "2"]


def test_csv_of_records_is_read_by_a_csv_reader(daemon: Daemon) -> None:
    topic(daemon, "csv")
    ok(daemon.dssctl("produce", "csv", "--key", "k,1", stdin=b'a "quoted", word\n'))
    printed = ok(daemon.dssctl("consume", "csv/#", "--no-follow", "-o", "csv")).decode()
    (row,) = csv.DictReader(io.StringIO(printed))
    assert (row["key"], row["payload"]) == ("k,1", 'a "quoted", word')


@pytest.mark.parametrize("output", ["table", "csv", "json", "jsonl", "yaml"])
def test_no_two_records_look_alike_in_any_format(daemon: Daemon, output: str) -> None:
    topic(daemon, "alike", "--if-not-exists", "--partitions", "1")
    odd = [b"", b"-", b"\xff", b"base64:/w==", b"a\nb", b"a\\nb", b"$'a\\nb'", b"a", b"a "]
    keys: list[bytes | None] = [None, *odd]
    if not records(daemon, "alike/#"):
        lines = (
            {"payload": ""} if key is None else {**of_bytes("key", key), **of_bytes("payload", key)}
            for key in keys
        )
        given = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        ok(daemon.dssctl("produce", "alike", "--input", "jsonl", stdin=given))
    seen = set()
    for at in range(len(keys)):
        place = ("--start", f"={at}", "-n", "1", "--no-headers", "-o", output)
        printed = ok(daemon.dssctl("consume", "alike/#", "--no-follow", *place)).decode()
        seen.add(OWN_TO_EACH.sub("", printed))
    assert len(seen) == len(keys)


OWN_TO_EACH = re.compile(
    r'"?offset"?: [0-9]+|^alike/0/0[ ,]+[0-9]+|[0-9]{4}-[0-9]{2}-[0-9]{2}T[^",\n]*', re.MULTILINE
)
"""The offset and the time of a record, as any format has them."""


def of_bytes(name: str, value: bytes) -> dict[str, object]:
    return {f"{name}_base64": base64.b64encode(value).decode()}


def test_a_table_of_records_shows_payloads_on_one_line_each(daemon: Daemon) -> None:
    topic(daemon, "escape")
    ok(daemon.dssctl("produce", "escape", stdin=b"\x1b]0;owned\x07\tx\n"))
    header, row = ok(daemon.dssctl("consume", "escape/#", "--no-follow")).decode().splitlines()
    assert header.split() == ["STREAM", "OFFSET", "SUBJECT", "KEY", "PAYLOAD"]
    assert row.split()[-1] == r"$'\x1b]0;owned\x07\tx'"


def test_a_member_acknowledges_what_it_printed_and_the_next_goes_on(daemon: Daemon) -> None:
    topic(daemon, "member")
    ok(daemon.dssctl("produce", "member", stdin=b"1\n2\n3\n4\n5\n"))
    ok(daemon.dssctl("groups", "create", "members@member/#", "--start", "earliest"))
    consume = ("consume", "member/#", "--group", "members", "-o", "jsonl")
    first = ok(daemon.dssctl(*consume, "-n", "2")).splitlines()
    assert [json.loads(line)["payload"] for line in first] == ["1", "2"]
    second = ok(daemon.dssctl(*consume, "-n", "3")).splitlines()
    assert [json.loads(line)["payload"] for line in second] == ["3", "4", "5"]
    # Sent ahead to the first member, but never handed out: no attempt was made.
    assert [json.loads(line)["attempt"] for line in second] == [1, 1, 1]
    described = json.loads(ok(daemon.dssctl("groups", "describe", "members", "-o", "json")))
    assert described["item"]["lag"] == 0


def test_the_record_at_a_floor_is_read_by_its_stream_and_offset(daemon: Daemon) -> None:
    topic(daemon, "at", "--partitions", "2")
    ok(daemon.dssctl("produce", "at", "--key", "k", stdin=b"1\n2\n3\n"))
    ok(daemon.dssctl("groups", "create", "stuck@at/#", "--start", "earliest"))
    ok(daemon.dssctl("consume", "at/#", "--group", "stuck", "-n", "1"))
    grants = items(daemon.dssctl("grants", "ls", "stuck", "-o", "json"))
    (behind,) = [grant for grant in grants if grant["lag"]]
    assert (behind["floor"], behind["lag"], behind["lag_exact"]) == (1, 2, True)
    assert behind["oldest_unacked_at"] is not None
    place = ("--stream", str(behind["stream"]), "--start", f"={behind['floor']}")
    printed = ok(daemon.dssctl("consume", *place, "--no-follow", "-n", "1", "-o", "json"))
    (record,) = json.loads(printed)["items"]
    assert (record["stream"], record["offset"]) == (behind["stream"], 1)
    assert record["payload"] == "2"


def test_a_member_is_named_as_it_says_or_by_who_runs_it_where(daemon: Daemon) -> None:
    topic(daemon, "who", "--partitions", "1")
    ok(daemon.dssctl("groups", "create", "whose@who/#", "--start", "earliest"))
    consume = ("consume", "who/#", "--group", "whose", "-n", "1", "-o", "jsonl")
    for number, (name, shown) in enumerate((("anna", r"anna"), (None, OWN_NAME))):
        named = () if name is None else ("--client-id", name)
        process = ProgramProcess(
            ["-m", "dssctl", "--endpoint", daemon.endpoint, *consume, *named],
            stdout=subprocess.PIPE,
        )
        assert re.fullmatch(shown, holder(daemon, "whose", process))
        ok(daemon.dssctl("produce", "who", stdin=b"%d\n" % number))
        process.communicate(timeout=60)
        assert process.returncode == 0


OWN_NAME = r"[\w.]+-[\w.]+-[0-9]+-dssctl-[0-9a-f]{6}"


def holder(daemon: Daemon, group: str, process: ProgramProcess) -> str:
    """The client that holds the group's only stream, once there is one."""
    while process.poll() is None:
        (grant,) = items(daemon.dssctl("grants", "ls", "--group", group, "-o", "json"))
        if grant["client_id"]:
            return str(grant["client_id"])
    pytest.fail("the member ended")


def test_a_start_that_contradicts_the_group_is_a_conflict(daemon: Daemon) -> None:
    topic(daemon, "starts")
    ok(daemon.dssctl("groups", "create", "starters@starts/#", "--start", "earliest"))
    consume = ("consume", "starts/#", "--group", "starters", "--start", "now", "-n", "1")
    refused(daemon.dssctl(*consume), 6, "DSS2007")


def test_what_a_reader_did_not_take_from_the_pipe_is_not_acknowledged(daemon: Daemon) -> None:
    topic(daemon, "head", "--partitions", "1")
    ok(daemon.dssctl("produce", "head", stdin=b"".join(b"%d\n" % each for each in range(100))))
    ok(daemon.dssctl("groups", "create", "few@head/#", "--start", "earliest"))
    consume = ("consume", "head/#", "--group", "few", "-o", "jsonl")
    process = ProgramProcess(
        ["-m", "dssctl", "--endpoint", daemon.endpoint, *consume],
        stdout=subprocess.PIPE,
    )
    shown = subprocess.run(["head", "-3"], stdin=process.stdout, capture_output=True, check=True)
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(timeout=60) == 141
    assert [json.loads(line)["payload"] for line in shown.stdout.splitlines()] == ["0", "1", "2"]
    (grant,) = items(daemon.dssctl("grants", "ls", "--group", "few", "-o", "json"))
    assert (grant["floor"], grant["acked_above_floor"]) == (3, 0)


def test_what_the_disk_does_not_take_is_not_acknowledged(daemon: Daemon) -> None:
    topic(daemon, "full", "--partitions", "1")
    ok(daemon.dssctl("produce", "full", stdin=b"1\n"))
    ok(daemon.dssctl("groups", "create", "lost@full/#", "--start", "earliest"))
    consume = ("consume", "full/#", "--group", "lost")
    with open("/dev/full", "wb") as full:  # noqa: PTH123 - no file
        process = ProgramProcess(
            ["-m", "dssctl", "--endpoint", daemon.endpoint, *consume],
            stdout=full,
            stderr=subprocess.PIPE,
        )
        _, said = process.communicate(timeout=60)
    assert process.returncode == 74
    assert said.startswith(b"error DSS1111: ")
    assert b"Traceback" not in said
    (grant,) = items(daemon.dssctl("grants", "ls", "--group", "lost", "-o", "json"))
    assert grant["floor"] == 0


def test_the_start_that_is_printed_is_taken_back(daemon: Daemon) -> None:
    topic(daemon, "begin", "--partitions", "1")
    for number, start in enumerate(("now", "earliest", "-15m", "@1795000000.25", "=0")):
        created = daemon.dssctl(
            "groups", "create", f"b{number}@begin/#", "--start", start, "-o", "json"
        )
        printed = json.loads(ok(created))["item"]["start"]
        again = ("groups", "create", f"b{number}@begin/#", "--start", printed, "--if-not-exists")
        ok(daemon.dssctl(*again))


def test_a_reader_that_has_enough_ends_a_consumer_with_141_and_loses_nothing(
    daemon: Daemon,
) -> None:
    topic(daemon, "enough")
    ok(daemon.dssctl("produce", "enough", stdin=b"1\n2\n"))
    ok(daemon.dssctl("groups", "create", "full@enough/#", "--start", "earliest"))
    consume = ("consume", "enough/#", "--group", "full", "-o", "jsonl")
    process = ProgramProcess(
        ["-m", "dssctl", "--endpoint", daemon.endpoint, *consume],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(timeout=60) == 141
    assert process.stderr is not None
    with process.stderr as stderr:
        assert stderr.read() == b""
    printed = ok(daemon.dssctl(*consume, "-n", "2")).splitlines()
    assert [json.loads(line)["payload"] for line in printed] == ["1", "2"]
