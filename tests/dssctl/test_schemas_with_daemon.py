"""What commands print as JSON is what the schema says, and what the fields say that it is."""

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import dss_client.sync
import dssctl
from dss_client.changes import CreateJob
from support.daemon_process import STOP_S_MAX
from support.dssctl_call import Completed, Daemon, environment
from support.started_program import ProgramProcess

SCHEMAS = Path(dssctl.__file__).parent / "schemas"
SCHEMA = json.loads((SCHEMAS / "output.schema.json").read_text())


@pytest.fixture(scope="module")
def busy(daemon: Daemon) -> Iterator[Daemon]:
    """A daemon with one of everything."""
    daemon.dssctl("topics", "create", "orders", "--partitions", "2", "--retention", "7d")
    daemon.dssctl("groups", "create", "billing@orders/#", "--start", "earliest")
    daemon.dssctl("groups", "create", "idle@orders/#", "--start", "earliest")
    lines = b'{"key": "a", "payload": {"n": 1}}\n{"payload_base64": "/w=="}\n'
    daemon.dssctl("produce", "orders", "--input", "jsonl", stdin=lines * 3)
    command = ("consume", "orders/#", "--group", "billing", "--client-id", "anna", "-o", "jsonl")
    member = ProgramProcess(
        ["-m", "dssctl", "--endpoint", daemon.endpoint, *command],
        stdout=subprocess.PIPE,
        env=environment(),
    )
    assert member.stdout is not None
    line = json.loads(member.stdout.readline())
    require("Record", line)
    daemon.dssctl("offsets", "skip", "idle", "--by", "1", "-y", "--reason", "tried")
    scheduled = ("--cron", "@daily", "--task", "scrub", "--arg", "rate=1G")
    daemon.dssctl("schedules", "create", "nightly", *scheduled)
    daemon.dssctl("schedules", "trigger", "nightly")
    audit = CreateJob("looked", "audit", source="orders")
    with dss_client.sync.connect(endpoint=daemon.endpoint) as client:
        client.operations.apply(client.operations.plan(audit))
    yield daemon
    member.send_signal(signal.SIGINT)
    member.communicate(timeout=STOP_S_MAX)


def require(kind: str, item: object) -> None:
    definition = {"$ref": f"#/$defs/{kind}", "$defs": SCHEMA["$defs"]}
    told = [error.message for error in Draft202012Validator(definition).iter_errors(item)]
    assert told == []


def documents(done: Completed) -> dict[str, Any]:
    assert done.returncode in (0, 1, 10), done.stderr.decode()
    document: dict[str, Any] = json.loads(done.stdout)
    return document


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("topics ls", "TopicList"),
        ("topics describe orders", "Topic"),
        ("groups ls", "GroupList"),
        ("groups describe billing", "Group"),
        ("groups why billing --stream orders/0/0 --offset 0", "RecordStandingList"),
        ("groups stuck --for 1ms", "StuckList"),
        ("groups verify billing", "StreamSumsList"),
        ("grants ls", "GrantList"),
        ("borrowers ls", "BorrowerList"),
        ("borrowers describe billing anna", "Borrower"),
        ("leaders ls", "LeaderList"),
        ("leaders describe billing", "Leader"),
        ("sessions ls", "SessionList"),
        ("sessions describe anna", "Session"),
        ("offsets export billing", "GroupOffsets"),
        ("schedules ls", "ScheduleList"),
        ("schedules describe nightly", "Schedule"),
        ("schedules runs nightly", "ScheduleRunList"),
        ("schedules preview nightly", "DueTimeList"),
        ("jobs ls", "JobList"),
        ("jobs describe looked --chunks", "Job"),
        ("jobs cancel looked --dry-run", "OperationPlan"),
        ("tasks ls", "TaskList"),
        ("tasks describe scrub", "Task"),
        ("tasks run checkpoint", "Operation"),
        ("schedules edit nightly --retries 1 --dry-run", "OperationPlan"),
        ("ops ls", "OperationList"),
        ("ops show NEWEST", "Operation"),
        ("records peek orders", "StoredRecordList"),
        ("records peek orders --as json", "StoredRecordList"),
        ("records find orders --since -1h", "StoredRecordList"),
        ("records get orders/0/0 0", "StoredRecord"),
        ("doctor", "FindingList"),
        ("check lag --warn 1M", "Check"),
        ("check disk --crit 0% --warn 0%", "Check"),
        ("bench -n 50 --single 2", "BenchPartList"),
        ("consume orders/# --no-follow", "RecordList"),
        ("audit ls", "CallList"),
        ("events", "EventList"),
        ("daemon status", "DaemonStatus"),
        ("wait group/billing --for members>=1", "Waited"),
        ("errors ls", "ErrorCodeList"),
        ("errors explain DSS2001", "ErrorCode"),
        ("explain group", "FieldList"),
        ("config show --origin", "ConfiguredValueList"),
        ("contexts ls", "ContextList"),
        ("version", "Version"),
        ("offsets rewind billing --to earliest --dry-run", "OperationPlan"),
        ("groups rebalance billing --dry-run", "OperationPlan"),
        ("grants transfer billing orders/0/0 --to anna --dry-run", "OperationPlan"),
        ("topics rm orders --force --dry-run", "OperationPlan"),
        ("groups pause idle -y", "Operation"),
    ],
)
def test_a_document_is_as_its_schema_has_it(command: str, kind: str, busy: Daemon) -> None:
    newest = busy.dssctl("ops", "ls", "-n", "1", "-o", "name").stdout.decode().strip()
    words = command.replace("NEWEST", newest).split()
    document = documents(busy.dssctl(*words, "-o", "json"))
    assert document["kind"] == kind
    if "item" in document:
        require(kind, document["item"])
        return
    for item in document["items"]:
        require(kind.removesuffix("List"), item)


def test_the_whole_of_a_document_is_one_of_those_that_the_schema_lists(busy: Daemon) -> None:
    validator = Draft202012Validator(SCHEMA)
    for command in (("topics", "ls"), ("version",)):
        assert validator.is_valid(documents(busy.dssctl(*command, "-o", "json")))
    refused = busy.dssctl("topics", "describe", "ordres", "-o", "json")
    assert refused.returncode == 5
    error = json.loads(refused.stderr)
    assert validator.is_valid(error)
    assert error["hint"].startswith("Did you mean orders?")


def test_what_became_of_a_bundle_is_as_its_schema_has_it(busy: Daemon, tmp_path: Path) -> None:
    done = busy.dssctl("support", "gather", str(tmp_path / "b.tar.gz"), "-o", "json")
    require("SupportBundle", documents(done)["item"])


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("topics", "describe", "oders"), "Did you mean orders?"),
        (("groups", "describe", "biling"), "Did you mean billing?"),
        (("groups", "describe", "biling@orders/#"), "Did you mean billing@orders/#"),
        (("groups", "rm", "biling", "-y"), "Did you mean billing?"),
        (("borrowers", "describe", "billing", "ana"), "Did you mean anna?"),
        (("sessions", "close", "ana", "-y"), "Did you mean anna?"),
    ],
)
def test_a_name_that_is_not_there_suggests_one_that_is(
    command: tuple[str, ...], said: str, busy: Daemon
) -> None:
    refused = busy.dssctl(*command)
    assert refused.returncode == 5, refused.stderr.decode()
    assert f"hint: {said}" in refused.stderr.decode()
