"""Every command of `docs/operations.md`, in the order of the page, on a daemon at work."""

import json
import shutil
from collections.abc import Callable

import pytest

from support.certificates import Authority
from support.page_blocks import blocks
from support.page_world import DEAD, MEMBERS, World, free_port, world_at_work
from support.prerequisites import need_program
from support.proof_share import only_in_proof


def stops(at: World) -> None:
    at.stop()


def starts(at: World) -> None:
    at.start()
    at.join(*MEMBERS)


def configures(name: str, endpoint: str) -> Callable[[World], None]:
    """Go on with a configuration of its own, and with or without an endpoint."""

    def act(at: World) -> None:
        given = at.here(endpoint) if endpoint else at.endpoint
        at.shell.run(f"export DSSCTL_CONFIG={at.home}/{name}.toml DSSCTL_ENDPOINT={given}")
        if endpoint == "none":
            at.shell.run("unset DSSCTL_ENDPOINT")

    return act


def mends(at: World) -> None:
    (at.home / "mended").touch()


def names_operation(at: World) -> None:
    newest = json.loads(at.dssctl("ops", "ls", "-o", "json"))["items"][0]
    at.names["57"] = str(newest["number"])


def names_recording(at: World) -> None:
    at.names["busy.jsonl"] = str(at.home / "busy.jsonl")


def prompts(at: World) -> None:
    assert "[prod!]" in at.shell.run("dssctl contexts prompt")[1]


def uses_alias(at: World) -> None:
    code, _ = at.shell.run("dssctl slow")
    assert code == 0, at.shell.errors()


def recorded(at: World) -> None:
    assert (at.home / "busy.jsonl").read_text()


def second_leaves(at: World) -> None:
    at.leave("worker-2")


def second_joins(at: World) -> None:
    at.join("worker-2")


def certifies(at: World) -> None:
    authority = Authority(at.root / "etc")
    pair = authority.signed("localhost", "DNS:localhost")
    (at.root / "etc/dssd").mkdir()
    shutil.copy(pair.cert, at.root / "etc/dssd/cert.pem")
    shutil.copy(pair.key, at.root / "etc/dssd/key.pem")
    shutil.copy(authority.cert, at.home / "ca.pem")
    port = free_port()
    at.names |= {"0.0.0.0:7233": f"127.0.0.1:{port}", "dss.example:7233": f"localhost:{port}"}
    configures("remote", "unix:/run/dssd/dssd.sock")(at)


def forwards(at: World) -> None:
    """What `ssh` would do."""
    (at.root / "tmp/dss-prod.sock").symlink_to(at.data / "dssd.sock")
    configures("forwarded", "none")(at)


BEFORE: dict[str, Callable[[World], None]] = {
    "dssd check --data-dir /var/lib/dssd": stops,
    "dssctl doctor": starts,
    "dssctl contexts add prod --endpoint unix:": configures("contexts", "none"),
    "dssctl config show": prompts,
    "dssctl -X": uses_alias,
    "dssctl groups ls 'pay*'": configures("lists", ""),
    "dssctl dlq redrive": mends,
    "dssctl top --record": names_recording,
    "dssctl top -o json": recorded,
    "dssctl wait op/57": names_operation,
    "dssctl wait session/worker-2": second_leaves,
    "dssctl offsets rewind billing --to -15m --dry-run": second_joins,
    "dssctl ops undo 57": names_operation,
    "dssd serve": certifies,
    "dssctl contexts add prod --endpoint dss:": configures("other-host", "none"),
    "dssctl tokens add press": configures("remote", "unix:/run/dssd/dssd.sock"),
    "dssctl contexts add there": forwards,
    "dssctl audit ls --since": configures("lists", ""),
}
"""What happens before the first command that begins so."""

SAYS = {
    "dssd service install --system --print": "ExecStart=",
    "dssd check --data-dir /var/lib/dssd -o json": '"damaged": false',
    "dssctl doctor ": "groups.dead",
    "dssctl bench": "end-to-end",
    "dssctl support gather": "status.json",
    "dssctl support analyze": "bundle.whole",
    "tar": "config.toml",
    "dssctl groups describe billing -o json": "attention",
    "dssctl groups why billing orders": "acked",
    "dssctl groups why billing --key": "acked",
    "dssctl records peek orders/0/3 --offset 4711": "orders/0/3    4711",
    "dssctl records find orders --key ann": "orders/eu/1",
    "dssctl records find orders --match": "timeout of the bank",
    "dssctl records get": "billing@orders/#",
    "dssctl leaders describe": "worker-2",
    "dssctl -c look": "HEALTH",
    "dssctl contexts validate": "yes",
    "dssctl config show": "context prod",
    "dssctl -X": '"name": "orders"',
    "dssctl groups ls -o template": "billing 0",
    "dssctl groups ls -o help": "COLUMN",
    "dssctl groups ls -o wide --filter 'dead>0": f"{DEAD} dead",
    "dssctl dlq ls billing": "Reject: no price",
    "dssctl dlq ls billing --error": "Reject: no price",
    "dssctl dlq errors": "12  Reject: no address",
    "dssctl dlq peek": "orders/0/3@17",
    "dssctl dlq keys": "Reject: no price",
    "dssctl rq ls": "the bank is away",
    "dssctl dlq redrive": "redrive 40 dead letters",
    "dssctl dlq discard": "discard 12 dead letters",
    "dssctl rq retry-now": "bring forward 1 record",
    "dssctl groups verify": "yes",
    "dssctl events -f": "operation.applied",
    "dssctl watch grants": "worker-1",
    "dssctl wait session": "session/worker-2",
    "dssctl ops ls": "TKT-12: wrong rates",
    "dssctl ops undo": "take back operation",
    "dssctl tokens add shipper": "shipper",
    "dssctl principals ls": "token:shipper",
    "dssctl -c there": "billing",
    "dssctl audit ls --since": "asked to create the topic orders: done",
}
"""What the first command that begins so prints, among others."""


@only_in_proof
@pytest.mark.slow("a hundred commands, each a process of a shell, three of them a bench")
def test_the_commands_of_the_page_work_in_its_order() -> None:
    for program in ("bash", "jq", "tar", "openssl"):
        need_program(program)
    with world_at_work() as at:
        at.follow(blocks("docs/operations.md", "sh", "console"), BEFORE, says=SAYS)
