"""Commands and programs on pages that show them by the way, on a daemon of their own."""

import json
import shlex
from pathlib import Path

import pandas
import pyarrow.parquet
import pytest

from support.page_blocks import blocks
from support.page_world import Act, World, free_port, world, world_at_work
from support.prerequisites import need_program
from support.proof_share import only_in_proof

REPO = Path(__file__).resolve().parents[2]
ROWS = 2_000
"""Of the flights, so many."""
NAGIOS_UNKNOWN = 3
"""Of a certificate, where the daemon has no TLS."""


def types(*commands: str) -> Act:
    """What has to be there first."""

    def act(at: World) -> None:
        for each in commands:
            at.dssctl(*shlex.split(each))

    return act


def goes_on_with(name: str, other: str) -> Act:
    """The page shows one command after another for the same thing, and here they have another."""

    def act(at: World) -> None:
        at.dssctl("topics", "create", other, "--partitions", "4")
        at.names[name] = other

    return act


@only_in_proof
@pytest.mark.slow("a daemon and a dozen commands, each a process of a shell")
def test_the_commands_on_growth_work() -> None:
    with world() as at:
        at.dssctl("topics", "create", "orders", "--partitions", "6")
        at.follow(
            blocks("docs/growth.md", ""),
            {
                "dssctl topics grow orders --partitions 12 --with-shards": goes_on_with(
                    "orders", "orders-2"
                ),
                "dssctl topics add-storage": goes_on_with("orders", "orders-3"),
                "dssctl topics grow payments": types("topics create payments --partitions 4"),
            },
        )


@only_in_proof
@pytest.mark.slow("a daemon and a dozen commands, each a process of a shell")
def test_an_ordered_group_is_created_as_the_page_on_delivery_has_it() -> None:
    with world() as at:
        at.dssctl("topics", "create", "orders")
        at.follow(blocks("docs/delivery.md", "", section="Ordered groups"))
        assert at.dssctl("groups", "ls", "-o", "template={name} {ordered}") == "billing true\n"


@only_in_proof
@pytest.mark.slow("a daemon, three members and a dozen commands, each a process of a shell")
def test_the_commands_on_monitoring_work() -> None:
    need_program("curl")
    [serves, checks] = blocks("docs/monitoring.md", "sh")
    with world_at_work() as at:
        (at.root / "var/lib/node_exporter").mkdir()
        at.names["127.0.0.1:9464"] = f"127.0.0.1:{free_port()}"
        at.follow([checks], exits={"dssctl check certificate": NAGIOS_UNKNOWN})
        at.stop()
        at.shell.run("unset DSSCTL_ENDPOINT")  # the usual one, as where nothing is said
        at.follow([serves], says={"curl": "dss_info"})
        assert "dss_check_lag_records" in (at.root / "var/lib/node_exporter/dss.prom").read_text()


@only_in_proof
@pytest.mark.slow("seven bulk jobs, each with a driver")
def test_the_commands_on_bulk_jobs_work() -> None:
    pages = blocks("docs/bulk.md", "console", "")
    [frames] = blocks("docs/bulk.md", "python")
    with world_at_work() as at:
        at.dssctl("topics", "create", "flights", "--partitions", "4")
        at.dssctl("topics", "create", "flights2", "--partitions", "8")
        at.dssctl("topics", "create", "orders-again")
        at.dssctl("topics", "create", "copies")
        of_kennedy = write_flights(at.home / "flights.parquet")
        before = {
            "dssctl replays create again": types("jobs wait old"),
            "dssctl exports create lake": types("jobs wait again"),
            "dssctl audits create nightly --from copies": types("jobs rm nightly --yes"),
            "dssctl jobs pause": leaves_undriven,
        }
        at.follow(pages, before)
        names = {"pandas": pandas, "json": json}
        exec(compile(at.here(frames.text), "docs/bulk.md", "exec"), names)
        assert len(names["rows"]) == of_kennedy


def write_flights(path: Path) -> int:
    """Some of the flights, each with a time; how many of them begin where the page replays."""
    table = pyarrow.parquet.read_table(REPO / "examples/flights.parquet").slice(0, ROWS)
    times = pyarrow.array([each * 60_000_000 for each in range(ROWS)], pyarrow.timestamp("us"))
    pyarrow.parquet.write_table(table.append_column("scheduled", times), path)
    origins: list[str] = table["origin"].to_pylist()
    return origins.count("JFK")


def leaves_undriven(at: World) -> None:
    """A job that has not ended, for the others have."""
    at.dssctl(*shlex.split("replays create waiting --from flights --to copies --no-drive --yes"))
    at.names["again"] = "waiting"


@only_in_proof
@pytest.mark.slow("a daemon and a program")
def test_the_program_in_the_readme_publishes_and_reads() -> None:
    [program] = blocks("README.md", "python")
    with world() as at:
        (at.home / "program.py").write_text(program.text)
        code, printed = at.until_it_told(str(at.home / "program.py"), of="b'ada' b'12.50' False")
        assert (code, printed.partition("payments/0/")[0]) == (0, "durable at ")
