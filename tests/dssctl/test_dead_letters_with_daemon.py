"""``dssctl dlq`` and ``rq`` against a daemon process: records that fail, and come back."""

import asyncio
import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from dss_client import connect
from support.dssctl_call import Daemon, ok
from support.page_blocks import blocks
from support.small_disk import fill, mounted

PATIENCE_S = 30.0
GROUP = "$share/billing/orders/#"
LEFT = ("wait", "group/billing", "--for", "dead=0")


def items(daemon: Daemon, *arguments: str) -> list[dict[str, Any]]:
    return list(json.loads(ok(daemon.dssctl(*arguments, "-o", "json")))["items"])


def one(daemon: Daemon, *arguments: str) -> dict[str, Any]:
    return dict(json.loads(ok(daemon.dssctl(*arguments, "-o", "json")))["item"])


async def consumed(daemon: Daemon, count: int, *, fails: bool) -> list[tuple[int, str | None]]:
    """Offsets and last errors of so many records; the first is refused, the others rejected."""
    given: list[tuple[int, str | None]] = []
    async with (
        asyncio.timeout(PATIENCE_S),
        connect(endpoint=daemon.endpoint) as client,
        client.subscribe(GROUP) as subscription,
    ):
        async for record in subscription:
            given.append((record.offset, record.last_error))
            if not fails:
                await record.ack()
            elif record.offset:
                await record.reject(error=f"no customer {record.offset}")
            else:
                await record.nak(error="busy")
            if len(given) == count:
                break
    return given


@pytest.fixture(scope="module")
def failed(daemon: Daemon) -> Daemon:
    """A group with three dead letters, of two errors, and one record that waits for an hour."""
    ok(daemon.dssctl("topics", "create", "orders", "--partitions", "1"))
    ok(daemon.dssctl("groups", "create", GROUP, "--max-deliver", "2", "--backoff", "1h"))
    lines = "".join(f'{{"id": {number}}}\n' for number in range(4))
    ok(daemon.dssctl("produce", "orders", "--key", "ann", stdin=lines.encode()))
    asyncio.run(consumed(daemon, 4, fails=True))
    return daemon


def looked_at_closer(failed: Daemon) -> None:
    """The same by member, time and key, and as pages."""
    assert not items(failed, "dlq", "ls", "billing", "--member", "nobody")
    assert not items(failed, "dlq", "ls", "billing", "--to", "-1h")
    assert len(items(failed, "dlq", "ls", "billing", "--from", "-1h", "--attempts", "1")) == 3
    [counted] = items(failed, "dlq", "keys", "billing")
    assert (counted["key"], counted["count"], counted["count_exact"]) == ("ann", 3, True)
    assert (counted["stream"], counted["offset"], counted["error"]) == (
        "orders/0/0", 1, "no customer 1",
    )  # fmt: skip
    page = ok(failed.dssctl("dlq", "describe", "billing")).decode()
    assert "dssctl dlq redrive 'billing@orders/#' --error FINGERPRINT --canary 10" in page
    [key] = one(failed, "rq", "describe", "billing")["keys"]
    assert (key["key"], key["count"]) == ("ann", 1)
    assert one(failed, "rq", "peek", "billing")["payload"] == '{"id": 0}'


def test_dead_letters_are_listed_looked_at_redriven_and_given_up(failed: Daemon) -> None:
    [waiting] = items(failed, "rq", "ls", "billing")
    assert (waiting["stream"], waiting["offset"], waiting["attempt"]) == ("orders/0/0", 0, 1)
    assert waiting["error"] == "busy"
    done = failed.dssctl("dlq", "ls", "billing")
    assert b"billing has 3 dead letters" in done.stderr
    assert b"3 x no customer 3" in done.stderr
    assert b"orders/0/0@3" in done.stdout
    dead = items(failed, "dlq", "ls", "billing")
    assert [(each["offset"], each["key"], each["cause"]) for each in dead] == [
        (offset, "ann", "rejected") for offset in (1, 2, 3)
    ]
    looked_at_closer(failed)
    [error] = items(failed, "dlq", "errors", "billing")
    assert (error["count"], error["error"]) == (3, "no customer 3")
    whole = one(failed, "dlq", "peek", "billing", "orders/0/0@2")
    assert (whole["payload"], whole["headers"]) == ('{"id": 2}', [])
    [group] = items(failed, "groups", "ls", "--filter", "dead>2")
    assert (group["dead"], group["retrying"], group["health"]) == (3, 1, "problem")
    assert b" 0 +1 retrying +3 dead " in ok(failed.dssctl("groups", "ls"))
    drained = failed.dssctl("wait", "group/billing", "--for", "lag=0")
    ok(drained)
    assert b"no lag counts what failed: 1 retrying and 3 dead; wait for them too" in drained.stderr
    assert failed.dssctl(*LEFT, "--timeout", "500ms").returncode == 4
    told = b"Nobody is a member of the group, and 1 record waits to be tried again."
    assert told in ok(failed.dssctl("groups", "stuck", "billing"))
    removal = ok(failed.dssctl("groups", "rm", "billing", "--dry-run"))
    assert b"1 record that waits to be tried again, 3 dead letters" in removal

    ok(failed.dssctl("dlq", "discard", "billing", "orders/0/0@1", "--yes"))
    redrive = ("dlq", "redrive", "billing", "--error", error["fingerprint"][:6], "--yes")
    done = failed.dssctl(*redrive, "--rate", "50", "-o", "json")
    number = json.loads(ok(done))["item"]["number"]
    assert b"nobody is a member of billing@orders/#: it goes on once somebody is" in done.stderr
    assert f"wait for it: dssctl ops wait {number}".encode() in done.stderr
    assert one(failed, "ops", "describe", str(number))["change"]["rate"] == 50
    again = asyncio.run(consumed(failed, 2, fails=False))
    assert sorted(again) == [(2, "no customer 2"), (3, "no customer 3")]
    ok(failed.dssctl("ops", "wait", str(number)))
    assert not items(failed, "dlq", "ls", "billing")
    ok(failed.dssctl(*LEFT))
    done = failed.dssctl("dlq", "redrive", "billing", "--error", "TypeError", "--yes")
    assert b"redrive nothing of billing@orders/#: it has no dead letters" in ok(done)
    done = failed.dssctl("rq", "ls", "billing", "--error", "TypeError")
    assert b"no record that waits of billing is what was chosen" in done.stderr


def test_dead_letters_are_written_as_lines_and_a_full_disk_leaves_none(
    letters: Daemon, tmp_path: Path
) -> None:
    file, killed = tmp_path / "letters.jsonl", tmp_path / "letters.jsonl.part"
    killed.write_text("what an export that was killed has left")
    done = letters.dssctl("dlq", "export", "written", str(file))
    assert b"2 dead letters of written written to" in done.stderr
    ok(done)
    items_ = [json.loads(line)["item"] for line in file.read_text().splitlines()]
    assert [(each["offset"], each["payload"], each["error"]) for each in items_] == [
        (0, '{"id": 0}', "nothing"),
        (1, '{"id": 1}', "nothing"),
    ]
    again = letters.dssctl("dlq", "export", "written", str(file))
    assert b"DSS1151" in again.stderr
    assert sorted(tmp_path.iterdir()) == [file, killed]
    with mounted(tmp_path / "disk", 64 << 10) as disk:
        fill(disk)
        full = letters.dssctl("dlq", "export", "written", str(disk / "letters.jsonl"))
        assert b"cannot be written: No space left on device" in full.stderr
        assert [each.name for each in disk.iterdir()] == ["filler"]
    assert len(items(letters, "dlq", "ls", "written")) == 2
    lines = ok(letters.dssctl("dlq", "export", "written", "--key", "ann"))
    assert len(lines.splitlines()) == 2


def test_what_waits_is_brought_forward_given_up_and_passed_over(letters: Daemon) -> None:
    [now] = [items(letters, "rq", "ls", "waits")]
    assert [each["offset"] for each in now] == [0, 1, 2]
    done = letters.dssctl("rq", "retry-now", "waits", "late/0/0@0", "--yes", "-o", "json")
    assert json.loads(ok(done))["item"]["state"] == "done"
    due = {each["offset"]: each["due_at"] for each in items(letters, "rq", "ls", "waits")}
    assert due[0] < due[1]
    for command in ("rq skip waits", "rq dead waits", "dlq discard waits"):
        refused = letters.dssctl(*command.split(), "--yes")
        assert (refused.returncode, b"DSS2170" in refused.stderr) == (2, True), command
        assert f"dssctl {command} --key KEY, or --all".encode() in refused.stderr
    refused = letters.dssctl("dlq", "redrive", "waits", "--canary", "0", "--yes")
    assert b"DSS2171" in refused.stderr
    assert b"dssctl dlq redrive waits --canary 10" in refused.stderr
    dead = ("rq", "dead", "waits", "late/0/0@1", "--yes")
    assert asyncio.run(beside_member(letters, 1, dead)) == [0]
    [dead_letter] = items(letters, "dlq", "ls", "waits")
    assert (dead_letter["offset"], dead_letter["cause"]) == (1, "given up")
    assert dead_letter["error"] == "busy"
    skip = ("rq", "skip", "waits", "--key", "ann", "--yes")
    asyncio.run(beside_member(letters, 0, skip))
    assert not items(letters, "rq", "ls", "waits")
    bad = letters.dssctl("check", "dead-letters", "waits", "--warn", "1", "--crit", "100")
    assert (bad.returncode, b"WARNING" in bad.stdout) == (1, True)
    assert letters.dssctl("check", "retries", "waits", "--warn", "1").returncode == 0


def test_what_was_passed_over_is_listed_and_comes_once_more(letters: Daemon) -> None:
    ok(letters.dssctl("groups", "create", "$share/passes/late/#", "--start", "earliest"))
    skip = ("records", "skip", "passes", "late/0/0", "0-2", "--yes", "--reason", "known")
    number = json.loads(ok(letters.dssctl(*skip, "-o", "json")))["item"]["number"]
    [skipped] = items(letters, "records", "skipped", "passes")
    assert (skipped["operation"], skipped["kind"], skipped["count"], skipped["reason"]) == (
        number, "records.skip", 3, "known",
    )  # fmt: skip
    redeliver = ("records", "redeliver", "passes", "late/0/0", "1", "2", "--yes")
    done = letters.dssctl(*redeliver)
    assert b"2 records come again" in done.stdout + done.stderr, done
    [offsets] = one(letters, "offsets", "export", "passes")["streams"]
    assert (offsets["floor"], offsets["acked"]) == (1, [])
    ok(letters.dssctl("ops", "undo", str(number), "--yes"))
    assert not items(letters, "records", "skipped", "passes")


async def beside_member(daemon: Daemon, count: int, command: tuple[str, ...]) -> list[int]:
    """Offsets of so many records, acknowledged, and a command that a member carries out."""
    given: list[int] = []
    async with (
        asyncio.timeout(PATIENCE_S),
        connect(endpoint=daemon.endpoint) as client,
        client.subscribe("$share/waits/late/#") as subscription,
    ):
        records = aiter(subscription)
        while len(given) < count:
            record = await anext(records)
            given.append(record.offset)
            await record.ack()
        done = await asyncio.to_thread(daemon.dssctl, *command, "-o", "json")
        assert json.loads(ok(done))["item"]["state"] == "done"
    return given


@pytest.fixture
def letters(daemon: Daemon) -> Daemon:
    """A group with two dead letters, and one with three records that wait for an hour."""
    if b"written" in ok(daemon.dssctl("groups", "ls")):
        return daemon
    for topic, count in (("writes", 2), ("late", 3)):
        ok(daemon.dssctl("topics", "create", topic, "--partitions", "1"))
        lines = "".join(f'{{"id": {number}}}\n' for number in range(count))
        ok(daemon.dssctl("produce", topic, "--key", "ann", stdin=lines.encode()))
    for group, topic in (("written", "writes"), ("waits", "late")):
        named = f"$share/{group}/{topic}/#"
        create = ("groups", "create", named, "--max-deliver", "3", "--backoff", "1h")
        ok(daemon.dssctl(*create, "--start", "earliest"))
    asyncio.run(refused(daemon, "$share/written/writes/#", 2, reject=True))
    asyncio.run(refused(daemon, "$share/waits/late/#", 3, reject=False))
    return daemon


async def refused(daemon: Daemon, group: str, count: int, *, reject: bool) -> None:
    async with (
        asyncio.timeout(PATIENCE_S),
        connect(endpoint=daemon.endpoint) as client,
        client.subscribe(group) as subscription,
    ):
        records = aiter(subscription)
        for _ in range(count):
            record = await anext(records)
            await (record.reject(error="nothing") if reject else record.nak(error="busy"))


def test_a_group_without_queues_says_so_and_how_one_gets_them(daemon: Daemon) -> None:
    ok(daemon.dssctl("groups", "create", "$share/plain/orders/#"))
    for command in ("dlq ls", "dlq ls --key ann", "rq ls", "dlq errors"):
        said = daemon.dssctl(*command.split(), "plain")
        assert said.returncode == 0
        assert b"plain has no queues: a record that fails comes again for ever" in said.stderr
        assert b"dssctl groups edit plain --max-deliver 5" in said.stderr


REFUSED = {
    "groups create $share/billing/orders/# --max-deliver 3 --if-not-exists": (
        "DSS2111",
        "dssctl groups edit 'billing@orders/#' --max-deliver 3",
    ),
    "groups create $share/x/none/# --ordered --max-deliver 5": ("DSS2150", "topics create none"),
    "groups create $share/x/# --ordered --max-deliver 5": ("DSS2150", "--ordered"),
    "groups create $share/x/orders/# --ordered": ("DSS1010", "give both"),
    "groups create $share/x/orders/# --max-deliver 5 --on-dead-letter block": (
        "DSS1010",
        "give --ordered as well",
    ),
    "groups create $share/x/orders/# --ordered --max-deliver 5 --on-dead-letter wait": (
        "DSS1010",
        "block",
    ),
    "groups edit billing --ordered": ("DSS2154", "--max-deliver 0"),
}


def test_an_ordered_group_is_declared_and_shown_and_what_it_cannot_be_is_refused(
    failed: Daemon,
) -> None:
    ok(failed.dssctl("topics", "create", "kept", "--partitions", "2"))
    ok(failed.dssctl("topics", "create", "grown", "--partitions", "1"))
    ok(failed.dssctl("produce", "grown", stdin=b"before\n"))
    ok(failed.dssctl("topics", "grow", "grown", "--partitions", "2", "--yes"))
    create = ("groups", "create", "$share/keeps/kept/#", "--max-deliver", "5", "--ordered")
    made = one(failed, *create, "--keyless", "dead")
    assert (made["ordered"], made["on_dead_letter"], made["keyless"]) == (True, "block", "dead")
    for command, (code, helps) in REFUSED.items():
        refused = failed.dssctl(*command.split())
        assert refused.returncode != 0, command
        assert code in refused.stderr.decode(), command
        assert helps in refused.stderr.decode(), command
    [kept] = items(failed, "groups", "ls", "--filter", "on_dead_letter=block")
    assert (kept["name"], kept["ordered"]) == ("keeps", True)
    wide = ok(failed.dssctl("groups", "ls", "-o", "wide")).decode()
    assert "ON-DEAD-LETTER" in wide
    page = ok(failed.dssctl("groups", "describe", "keeps")).decode()
    assert "of keys, also through retries: a dead letter blocks its key" in page
    ok(failed.dssctl("groups", "edit", "keeps", "--on-dead-letter", "skip", "--yes"))
    assert one(failed, "groups", "describe", "keeps")["on_dead_letter"] == "skip"
    plan = failed.dssctl("dlq", "redrive", "keeps", "--key", "ida", "--unordered", "--dry-run")
    assert plan.returncode == 0, plan.stderr


def test_the_readmes_commands_say_what_failed_and_bring_it_back(daemon: Daemon) -> None:
    [block] = blocks("README.md", "console", section="A record fails for good")
    typed = [each.command for each in block.commands()]
    ok(daemon.dssctl("topics", "create", "bills"))
    named = (each.replace("orders", "bills").replace("billing", "team") for each in typed)
    for command in named:
        words = shlex.split(command)[1:]
        ok(daemon.dssctl(*words, *(["--dry-run"] if "redrive" in words else [])))
    assert len(typed) == 5


def test_records_are_found_with_where_each_is_for_a_group(daemon: Daemon) -> None:
    ok(daemon.dssctl("topics", "create", "sought", "--partitions", "1"))
    lines = "".join(f'{{"id": {number}}}\n' for number in range(4))
    ok(daemon.dssctl("produce", "sought", "--key", "ann", stdin=lines.encode()))
    named = "$share/finds/sought/#"
    create = ("groups", "create", named, "--max-deliver", "3", "--backoff", "1h")
    ok(daemon.dssctl(*create, "--start", "earliest"))
    asyncio.run(refused(daemon, named, 1, reject=True))
    asyncio.run(refused(daemon, named, 1, reject=False))
    ok(daemon.dssctl("records", "skip", "finds", "sought/0/0", "2", "--yes"))
    find = ("records", "find", "sought", "--key", "ann", "--group", "finds")
    found = items(daemon, *find)
    assert [(each["offset"], each["code"]) for each in found] == [
        (0, "dead"), (1, "retrying"), (2, "skipped"), (3, "no-members"),
    ]  # fmt: skip
    assert "after 1 failure; the last error: nothing" in found[0]["sentence"]
    assert {each["group"] for each in found} == {"finds@sought/#"}
    assert b"WHY" in ok(daemon.dssctl(*find)).splitlines()[0]
    ok(daemon.dssctl("topics", "edit", "sought", "--retention", "1ms", "--yes"))
    ok(daemon.dssctl("tasks", "run", "retention"))
    gone = daemon.dssctl(*find, "--match", "id", "-o", "json")
    assert b"the topic has them no more" in gone.stderr
    left = json.loads(ok(gone))["items"]
    assert [(each["offset"], each["code"], each["payload"]) for each in left] == [
        (1, "retrying", '{"id": 1}'), (0, "dead", '{"id": 0}'),
    ]  # fmt: skip
    unknown = daemon.dssctl("records", "find", "sought", "--key", "ann", "--group", "nobody")
    assert b"DSS2004" in unknown.stderr


BULK_REFUSED = {
    "--from orders --dead-letters plain": ("DSS2230", "dssctl groups edit 'plain@orders/#'"),
    "--from orders --dead-letters empty": ("DSS2231", "dssctl dlq errors 'empty@orders/#'"),
    "--from other --dead-letters empty": ("DSS2232", "It reads: orders"),
    "--from orders --dead-letters nobody": ("DSS2004", "nobody"),
}


def test_a_job_of_dead_letters_that_are_not_there_says_what_would_help(daemon: Daemon) -> None:
    ok(daemon.dssctl("topics", "create", "orders", "--partitions", "1", "--if-not-exists"))
    ok(daemon.dssctl("topics", "create", "other", "--partitions", "1"))
    ok(daemon.dssctl("groups", "create", "$share/plain/orders/#", "--if-not-exists"))
    ok(daemon.dssctl("groups", "create", "$share/empty/orders/#", "--max-deliver", "3"))
    for command, (code, helps) in BULK_REFUSED.items():
        typed = ("replays", "create", "x", *command.split(), "--to", "other", "--allow-loop")
        told = daemon.dssctl(*typed, "--yes").stderr.decode()
        assert code in told, command
        assert helps in told, command
