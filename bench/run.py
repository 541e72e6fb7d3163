"""Measure DSS against its targets: `make bench`.

Every figure comes from processes of their own (daemon, client, baseline) on the same frames, in
interleaved rounds, so that what else the machine does hits ours and the baseline alike. Ratios
are of one round. Each round is kept in bench/results.json.
"""

import argparse
import asyncio
import json
import os
import signal
import tempfile
from pathlib import Path

import backups
import bulk
import dead_letters
import failover
import growth
import jetstream
import lanes
import ordered
import questions
import refusals
import remote
import rewind
import scrapes
import shards
import spark_jobs
import top
import watched
from processes import Daemon, run_program, running_daemon, started_program, within
from results import RESULTS, Row, write
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from workload import PARTITIONS, TOPIC

import dss_client
from dss_core.errors import EngineMissing
from dss_spark.submission import require_spark

COLUMNS_RECORDS = 6_000_000
NOWAIT_RECORDS = 1_500_000
CONSUME_RECORDS = 6_000_000
SYNC_RECORDS = 1_000_000
AUDIT_RECORDS = 2_000_000
SPARK_RECORDS = 300_000
SMALL_FRAMES = 120_000
SMALL_FRAME_RECORDS = (5, 1)
ROUNDS = 5
PART_SECONDS_MAX = 300.0
LONG_SECONDS_MAX = {"spark": 2_400.0, "ordered": 600.0, "shards": 600.0}
"""Of parts that start a JVM several times, or many consumers."""

PREBUILT = "bench/programs/produce_prebuilt.py"
BARE = "bench/programs/bare_server.py, bare_client.py"
OBJECTS = "bench/programs/objects.py"
LOOP = "bench/programs/loop.py"
ECHO = "bench/programs/echo_server.py, synced"
UNWATCHED = "the same without"
NOTHING = "python -c pass"
ARROW = "bench/programs/bare_arrow.py"
ASYNC = "the same with asyncio"
READ = "read as tables, over the wire"
STAGED = "the same plan, staged and not committed"
PARQUET = "Spark alone, Parquet to Parquet"
ON_SPARK = "the same on Spark"
BARE_SESSION = "bench/programs/bare_session.py"
PLAIN = "the same without queues"
WITHOUT = "the same without a redrive"
UNIX = "the same on a unix socket"
RESTS = "the same records, but for their rests"


def rows() -> dict[str, Row]:
    """The table of targets, empty."""
    million, thousand = "M records/s", "k records/s"
    return {
        "columns": Row("produce, columns API", million, ">= 2.0", PREBUILT, ">= 0.70"),
        "prebuilt": Row("  the same frames, pre-built", million, "baseline"),
        "nowait": Row("produce, one send_nowait a record", million, ">= 0.8"),
        "batch": Row("consume, by batch, 1,000 a frame", million, ">= 6.0", BARE, ">= 0.60"),
        "record": Row("consume, by record, 1,000 a frame", million, ">= 1.5", OBJECTS, ">= 0.35"),
        "looped": Row("  the same", million, "", LOOP, ">= 0.50"),
        "small5": Row("consume, by record, 5 a frame", million, ">= 0.7", LOOP, ">= 0.40"),
        "small1": Row("consume, by record, 1 a frame", million, ">= 0.7", LOOP, ">= 0.40"),
        "lane_batch": Row("with queues, none fails, by batch", million, "", PLAIN, ">= 0.95"),
        "lane_record": Row("  by record", million, "", PLAIN, ">= 0.95"),
        "failing_batch": Row("failures moved to a retry queue, by batch", thousand, ">= 5"),
        "failing_batch_syncs": Row("  entries a sync", "", ">= 32"),
        "failing_record": Row("  by record", thousand, ">= 5"),
        "failing_record_syncs": Row("  entries a sync", "", ">= 32"),
        "lent": Row("lanes lent with nothing in them", "ms", "baseline"),
        "lent_few": Row("  lent again with 10,000 that wait", "ms", "", "empty ones"),
        "lent_few_more": Row("  the same, beyond empty ones", "ms", "<= 100"),
        "lent_many": Row("  with 1,000,000", "s", ""),
        "lent_many_cpu": Row("  processor time of the daemon", "s", "<= 10"),
        "lent_many_mib": Row("  memory beyond empty ones", "MiB", "<= 256"),
        "redriven": Row("redrive, 12 lanes, alone", thousand, ">= 20"),
        "redriven_beside": Row("by batch, one lane redriven", million, "", WITHOUT, ">= 0.95"),
        "published_beside": Row(
            "  published beside it, columns API", million, "", WITHOUT, ">= 0.95"
        ),
        "redriven_cpu": Row("  processor time of the daemon for a redriven record", "us", "<= 100"),
        **dead_letters.rows(),
        **growth.rows(),
        **ordered.rows(),
        **jetstream.rows(),
        **shards.rows(),
        "run": Row("run, none refused", thousand, "baseline"),
        "refused1": Row("run, 1 % refused once", thousand, "", RESTS, ">= 0.80"),
        "refused50": Row("run, 50 % refused once", thousand, "", RESTS, ">= 0.30"),
        "echo50": Row("one message, bare gRPC echo, p50", "ms", "baseline"),
        "synced50": Row("  the same, an fdatasync in a thread between", "ms", "baseline"),
        "ack50": Row("one record, idle, to its ack, p50", "ms", "", ECHO, "<= 1.75"),
        "idle50": Row("one record, idle, to its consumer, p50", "ms", "", ECHO, "<= 2.0"),
        "ack99": Row("one record, idle, to its ack, p99", "ms", "", "its p50", "<= 3"),
        "idle99": Row("one record, idle, to its consumer, p99", "ms", "", "its p50", "<= 3"),
        "synced99": Row("  the echo with fdatasync, p99", "ms", "", "its p50", ""),
        "loaded50": Row("one record at 20 k records/s, p50", "ms", ""),
        "loaded99": Row("one record at 20 k records/s, p99", "ms", "<= 10"),
        "late99": Row("  the load itself late, p99", "ms", ""),
        "killed": Row("member killed, all its streams elsewhere", "ms", "<= 1,000"),
        "killed_first": Row("  the first of them", "ms", ""),
        "frozen": Row("member frozen, all its streams elsewhere", "ms", "<= 7,000"),
        "frozen_first": Row("  the first of them", "ms", ""),
        "daemon": Row("daemon killed, all streams served again", "ms", "<= 2,000"),
        "daemon_first": Row("  the first of them", "ms", ""),
        "daemon_large": Row("  the same with 1 GiB of log, all", "ms", "<= 2,000"),
        "daemon_large_first": Row("  the first of them", "ms", ""),
        "rewound": Row("rewind of 64 streams, 50 members, all delivering", "ms", "<= 1,000"),
        "rewound_done": Row("  the operation is done", "ms", "<= 1,000"),
        "rewound_frozen": Row("  one member frozen, those of the others", "ms", "<= 1,000"),
        "rewound_frozen_done": Row("  the operation is done, behind the lease", "ms", ""),
        **backups.rows(),
        "unscraped": Row("produce, 500 groups of 64 streams, not scraped", million, "baseline"),
        "scraped": Row("  a scrape each second", million, "", "not scraped", ">= 0.97"),
        "scrape": Row("  one scrape, from request to answer", "ms", ""),
        "scrape_cost": Row("  processor time of one scrape", "ms", "<= 30"),
        "listed": Row("500 groups of 64 streams listed and sorted", "ms", "<= 100"),
        "listed_grown": Row("  after records came in all streams", "ms", "<= 100"),
        "why_offset": Row("why, an offset at a million records of lag", "ms", "<= 50"),
        "why_key": Row("  a key with open records", "ms", "<= 50"),
        "why_absent": Row("  a key that no record has", "ms", "<= 50"),
        "key_still": Row("top, a key, 2,000 groups that stand still, p50", "ms", ""),
        "key": Row("top, a key, 2,000 groups that change 10 times a second, p50", "ms", "<= 50"),
        "key99": Row("  the same, p99", "ms", ""),
        "key_cpu": Row("  its processor time until then, p50", "ms", ""),
        "painted": Row("top, its first paint", "ms", "<= 400", NOTHING),
        "painted_cpu": Row("  its processor time until then", "ms", "", NOTHING),
        "taken": Row("  until it takes keys", "ms", "", NOTHING),
        "plain": Row("consume, by record, beside 200 idle groups", million, "baseline"),
        "watched": Row("  while a dashboard watches all", million, "", UNWATCHED, ">= 0.97"),
        "remote_batch": Row("consume, by batch, over TLS", million, "", UNIX, ">= 0.85"),
        "remote_record": Row("consume, by record, over TLS", million, "", UNIX, ">= 0.90"),
        "remote_more": Row("one record, p50, more than on a unix socket", "ms", "<= 0.3"),
        "remote_token": Row("  a token's check, processor time a call", "us", "<= 20"),
        "remote_made": Row("1,000 connections with TLS", "s", "<= 10"),
        "tables": Row("read as tables, 1,000 a frame", million, "baseline"),
        "in_place": Row("  in place", million, "", READ, ">= 1.50"),
        "audited": Row("  audited", million, "", READ, ">= 0.50"),
        "copies": Row("read as tables, copies of them", million, "baseline"),
        "audited_copies": Row("  audited", million, "", READ, ">= 0.40"),
        "spark_parquet": Row("Spark alone, Parquet to Parquet", million, "baseline"),
        "spark_plan": Row("replay on Spark, staged and not committed", million, "", PARQUET),
        "spark_spark": Row("  committed", million, "", STAGED, ">= 0.80"),
        "spark_local": Row("  by the local engine", million, "", ON_SPARK),
        "spark_plan_cpu": Row("  staged, processor time of a record", "us", "", PARQUET),
        "spark_cpu": Row("  committed, processor time of a record", "us", "", STAGED, "<= 1.25"),
        "spark_local_cpu": Row("  the local engine, the same", "us", "", ON_SPARK),
        "spark_bare_start": Row("a session of Spark begins", "ms", "baseline"),
        "spark_start": Row("  that of a driver of a job", "ms", "", BARE_SESSION),
        "spark_start_cpu": Row("  processor time of Python besides", "ms", "<= 300"),
        "beside_spark99": Row(
            "one record to its ack beside a paced replay on Spark, p99",
            "ms",
            "",
            "the echo beside it",
            "<= 1.5",
        ),
        "beside_spark_echo99": Row("  the echo with fdatasync, p99", "ms", "", "alone"),
        "sync_nowait": Row("dss_client.sync, produce one by one", million, "", ASYNC, ">= 0.70"),
        "sync_batch": Row("  consume, by batch", million, "", ASYNC, ">= 0.70"),
        "sync_record": Row("  consume, by record", million, "", ASYNC, ">= 0.70"),
        "replay": Row("replay, local engine", million, "", ARROW, ">= 0.70"),
        "replay_driver": Row("  the most memory of its driver", "MiB", ""),
        "replay_daemon": Row("  the most memory of the daemon", "MiB", ""),
        "beside_replay99": Row(
            "one record to its ack beside a paced replay, p99", "ms", "", "alone", "<= 2"
        ),
    }


async def throughput(name: str, *arguments: str) -> float:
    """Millions of records a second of one program."""
    result = await run_program(name, *arguments)
    return float(result["records"]) / float(result["seconds"]) / 1e6


async def fresh_topic(daemon: Daemon) -> None:
    """The bench's topic, empty."""
    async with dss_client.connect(endpoint=daemon.endpoint) as client:
        await client.topics.create(TOPIC, partitions=PARTITIONS)


async def produce_round(table: dict[str, Row]) -> None:
    async with running_daemon() as daemon:
        await fresh_topic(daemon)
        prebuilt = await throughput(
            "produce_prebuilt", daemon.endpoint, str(COLUMNS_RECORDS), "1000"
        )
        columns = await throughput("produce_columns", daemon.endpoint, str(COLUMNS_RECORDS))
        nowait = await throughput("produce_nowait", daemon.endpoint, str(NOWAIT_RECORDS))
    table["prebuilt"].add(prebuilt)
    table["columns"].add(columns, prebuilt)
    table["nowait"].add(nowait)


async def bare_stream() -> float:
    with tempfile.TemporaryDirectory(prefix="dss-bare-") as directory:
        endpoint = f"unix:{directory}/b.sock"
        records = str(CONSUME_RECORDS)
        async with started_program("bare_server", endpoint, records, "1000") as server:
            await server.ready()
            return await throughput("bare_client", endpoint, records)


async def consume_round(table: dict[str, Row]) -> None:
    async with running_daemon() as daemon:
        await fresh_topic(daemon)
        filled = await run_program(
            "produce_prebuilt", daemon.endpoint, str(CONSUME_RECORDS), "1000"
        )
        records = str(filled["records"])
        bare = await bare_stream()
        batch = await throughput("consume", daemon.endpoint, "batch", "by-batch", records)
        objects = await throughput("objects", records, "1000")
        loop = await throughput("loop", records, "1000")
        record = await throughput("consume", daemon.endpoint, "record", "by-record", records)
    table["batch"].add(batch, bare)
    table["record"].add(record, objects)
    table["looped"].add(record, loop)


async def small_frames_round(table: dict[str, Row]) -> None:
    for size in SMALL_FRAME_RECORDS:
        async with running_daemon() as daemon:
            await fresh_topic(daemon)
            filled = await run_program(
                "produce_prebuilt", daemon.endpoint, str(size * SMALL_FRAMES), str(size)
            )
            records = str(filled["records"])
            loop = await throughput("loop", records, str(size))
            small = await throughput("consume", daemon.endpoint, "record", "small", records)
        table[f"small{size}"].add(small, loop)


async def lanes_round(table: dict[str, Row]) -> None:
    port = scrapes.free_port()
    async with running_daemon("--metrics", f"127.0.0.1:{port}") as daemon:
        await fresh_topic(daemon)
        filled = await run_program("produce_prebuilt", daemon.endpoint, str(lanes.CONSUMED), "1000")
        records = str(filled["records"])
        await lanes.declare(daemon, "lane-batch", "lane-record", "failing-batch", "failing-record")
        for mode in ("batch", "record"):
            plain = await throughput("consume", daemon.endpoint, mode, f"plain-{mode}", records)
            ours = await throughput("consume", daemon.endpoint, mode, f"lane-{mode}", records)
            table[f"lane_{mode}"].add(ours, plain)
        for mode in ("batch", "record"):
            before = await lanes.entry_syncs(port)
            moved = await lanes.fail(daemon, mode, f"failing-{mode}", lanes.FAILING)
            table[f"failing_{mode}"].add(moved)
            syncs = await lanes.entry_syncs(port) - before
            table[f"failing_{mode}_syncs"].add(lanes.FAILING / syncs)


async def refusals_round(table: dict[str, Row]) -> None:
    for percent, keys in refusals.CASES.items():
        async with running_daemon() as daemon:
            await fresh_topic(daemon)
            await refusals.fill(daemon, keys)
            unhindered = await refusals.rate(daemon, 0, keys)
            rate = await refusals.rate(daemon, percent, keys)
        table["run"].add(unhindered)
        table[f"refused{percent}"].add(rate, refusals.ideal(unhindered, percent, keys))


async def latency_round(table: dict[str, Row]) -> None:
    async with running_daemon() as daemon:
        await fresh_topic(daemon)
        directory = str(daemon.directory)
        echoes = f"unix:{directory}/e.sock"
        async with started_program("echo_server", echoes, directory) as server:
            await server.ready()
            idle = await run_program("latency", daemon.endpoint, "idle", echoes)
        async with started_program("load", daemon.endpoint) as load:
            await load.ready()
            loaded = await run_program("latency", daemon.endpoint, "loaded")
            late = json.loads(load.last_line)
    synced = idle["synced_p50_ms"]
    table["echo50"].add(idle["echo_p50_ms"])
    table["synced50"].add(synced)
    table["ack50"].add(idle["ack_p50_ms"], synced)
    table["idle50"].add(idle["delivery_p50_ms"], synced)
    table["ack99"].add(idle["ack_p99_ms"], idle["ack_p50_ms"])
    table["idle99"].add(idle["delivery_p99_ms"], idle["delivery_p50_ms"])
    table["synced99"].add(idle["synced_p99_ms"], synced)
    table["loaded50"].add(loaded["delivery_p50_ms"])
    table["loaded99"].add(loaded["delivery_p99_ms"])
    table["late99"].add(late["late_p99_ms"])


async def failover_round(table: dict[str, Row]) -> None:
    async with running_daemon() as daemon:
        await fresh_topic(daemon)
        gaps = {
            "killed": await failover.member_death(daemon, "killed", signal.SIGKILL),
            "frozen": await failover.member_death(daemon, "frozen", signal.SIGSTOP),
            "daemon": await failover.daemon_death(daemon, "daemon"),
        }
        await failover.fill_log(daemon)
        gaps["daemon_large"] = await failover.daemon_death(daemon, "large")
    for name, gap in gaps.items():
        table[name].add(gap.all_ms)
        table[f"{name}_first"].add(gap.first_ms)


async def rewind_round(table: dict[str, Row]) -> None:
    async with running_daemon() as daemon:
        await rewind.fill(daemon)
        for name, frozen in (("rewound", False), ("rewound_frozen", True)):
            took = await rewind.rewind(daemon, name.replace("_", "-"), frozen=frozen)
            table[name].add(took.all_ms)
            table[f"{name}_done"].add(took.done_ms)


async def questions_round(table: dict[str, Row]) -> None:
    async with running_daemon() as daemon:
        await fresh_topic(daemon)
        took = await questions.answered(daemon)
    table["listed"].add(took.listed_ms)
    table["listed_grown"].add(took.grown_ms)
    table["why_offset"].add(took.offset_ms)
    table["why_key"].add(took.key_ms)
    table["why_absent"].add(took.absent_key_ms)


async def scrapes_round(table: dict[str, Row]) -> None:
    port = scrapes.free_port()
    async with running_daemon("--metrics", f"127.0.0.1:{port}") as daemon:
        await scrapes.fill(daemon)
        cost_ms = await scrapes.cost_ms(daemon, port)
        unscraped, scraped, took_ms = await scrapes.rates(daemon, port)
    table["unscraped"].add(unscraped)
    table["scraped"].add(scraped, unscraped)
    table["scrape"].add(took_ms)
    table["scrape_cost"].add(cost_ms)


async def top_round(table: dict[str, Row]) -> None:
    still = await asyncio.to_thread(top.answered, 0)
    busy = await asyncio.to_thread(top.answered, top.PER_SECOND)
    started = await asyncio.to_thread(top.started)
    table["key_still"].add(still.p50_ms)
    table["key"].add(busy.p50_ms)
    table["key99"].add(busy.p99_ms)
    table["key_cpu"].add(busy.cpu_p50_ms)
    table["painted"].add(started.painted.wall_ms, started.python.wall_ms)
    table["painted_cpu"].add(started.painted.cpu_ms, started.python.cpu_ms)
    table["taken"].add(started.taken.wall_ms, started.python.wall_ms)


async def watched_round(table: dict[str, Row]) -> None:
    async with running_daemon() as daemon:
        await fresh_topic(daemon)
        filled = await run_program(
            "produce_prebuilt", daemon.endpoint, str(CONSUME_RECORDS), "1000"
        )
        records = str(filled["records"])
        rates = await watched.compared(
            daemon, lambda name: throughput("consume", daemon.endpoint, "record", name, records)
        )
    table["plain"].add(rates.plain)
    table["watched"].add(rates.watched, rates.plain)


async def remote_round(table: dict[str, Row]) -> None:
    async with remote.reached() as where:
        local, distant = where.daemon.endpoint, where.remote
        await fresh_topic(where.daemon)
        filled = await run_program("produce_prebuilt", local, str(SYNC_RECORDS), "1000")
        records = str(filled["records"])
        for mode in ("batch", "record"):
            plain = await throughput("consume", local, mode, f"local-{mode}", records)
            ours = await throughput("consume", distant, mode, f"remote-{mode}", records)
            table[f"remote_{mode}"].add(ours, plain)
        near, far = [await run_program("latency", each, "alone") for each in (local, distant)]
        table["remote_more"].add(far["delivery_p50_ms"] - near["delivery_p50_ms"])
        table["remote_token"].add(await remote.token_check_us(where, TOPIC))
        made = await run_program("connections", distant, str(remote.CONNECTIONS))
        table["remote_made"].add(made["seconds"])


async def sync_round(table: dict[str, Row]) -> None:
    records = str(SYNC_RECORDS)
    async with running_daemon() as daemon:
        await fresh_topic(daemon)
        produced = [
            await throughput("produce_nowait", daemon.endpoint, records),
            await throughput("without_asyncio", daemon.endpoint, "produce", records),
        ]
        table["sync_nowait"].add(produced[1], produced[0])
        for mode in ("batch", "record"):
            other = await throughput("consume", daemon.endpoint, mode, f"async-{mode}", records)
            ours = await throughput("without_asyncio", daemon.endpoint, mode, records)
            table[f"sync_{mode}"].add(ours, other)


async def audits_round(table: dict[str, Row]) -> None:
    async with running_daemon() as daemon:
        await fresh_topic(daemon)
        await run_program("produce_prebuilt", daemon.endpoint, str(AUDIT_RECORDS), "1000")
        await run_program("audit", daemon.endpoint, "copy", TOPIC)
        for topic, read, audited in (
            (TOPIC, "tables", "audited"),
            (f"{TOPIC}-copies", "copies", "audited_copies"),
        ):
            rate = await throughput("audit", daemon.endpoint, "read", topic)
            table[read].add(rate)
            if topic == TOPIC:
                own = await throughput("audit", daemon.endpoint, "read_in_place", topic)
                table["in_place"].add(own, rate)
            table[audited].add(await throughput("audit", daemon.endpoint, "audit", topic), rate)


async def jetstream_round(table: dict[str, Row]) -> None:
    async with running_daemon() as daemon:
        await fresh_topic(daemon)
        filled = await run_program("produce_prebuilt", daemon.endpoint, str(SYNC_RECORDS), "1000")
        records = str(filled["records"])
        native = await throughput("consume", daemon.endpoint, "record", "native", records)
        facade = await throughput("consume", daemon.endpoint, "message", "facade", records)
    table["messages"].add(facade, native)
    await jetstream.beside_nats(table)


async def spark_round(table: dict[str, Row]) -> None:
    for rates in await spark_jobs.rates(SPARK_RECORDS):
        for name, baseline in (("parquet", ""), ("plan", "parquet"), ("spark", "plan")):
            other = rates[baseline].million_per_s if baseline else None
            table[f"spark_{name}"].add(rates[name].million_per_s, other)
        table["spark_local"].add(rates["local"].million_per_s, rates["spark"].million_per_s)
        table["spark_plan_cpu"].add(rates["plan"].cpu_us, rates["parquet"].cpu_us)
        table["spark_cpu"].add(rates["spark"].cpu_us, rates["plan"].cpu_us)
        table["spark_local_cpu"].add(rates["local"].cpu_us, rates["spark"].cpu_us)
    ours, bare = await spark_jobs.started()
    table["spark_bare_start"].add(bare.wall_s * 1e3)
    table["spark_start"].add(ours.wall_s * 1e3, bare.wall_s * 1e3)
    table["spark_start_cpu"].add((ours.cpu_s - bare.cpu_s) * 1e3)
    async with running_daemon() as daemon:
        await fresh_topic(daemon)
        await bulk.fill(daemon)
        beside = await spark_jobs.beside(daemon)
    table["beside_spark99"].add(beside.record_ms, beside.echo_ms)
    table["beside_spark_echo99"].add(beside.echo_ms, beside.echo_alone_ms)


async def bulk_round(table: dict[str, Row]) -> None:
    bare = await bulk.bare()
    async with running_daemon() as daemon:
        await fresh_topic(daemon)
        await bulk.fill(daemon)
        done = await bulk.replayed(daemon, "all")
        alone_ms = await bulk.live_p99_ms(daemon)
        async with bulk.paced_job(daemon, "paced"):
            beside_ms = await bulk.live_p99_ms(daemon)
    table["replay"].add(done.records_per_s / 1e6, bare / 1e6)
    table["replay_driver"].add(done.driver_mib)
    table["replay_daemon"].add(done.daemon_mib)
    table["beside_replay99"].add(beside_ms, alone_ms)


PARTS = {
    "produce": produce_round,
    "consume": consume_round,
    "small": small_frames_round,
    "lanes": lanes_round,
    "lent": lanes.lent_again_round,
    "redrive": lanes.redrive_round,
    "deadletters": dead_letters.measured,
    "growth": growth.measured,
    "ordered": ordered.measured,
    "shards": shards.measured,
    "refusals": refusals_round,
    "latency": latency_round,
    "failover": failover_round,
    "backups": backups.measured,
    "rewind": rewind_round,
    "questions": questions_round,
    "scrapes": scrapes_round,
    "watched": watched_round,
    "remote": remote_round,
    "top": top_round,
    "sync": sync_round,
    "jetstream": jetstream_round,
    "bulk": bulk_round,
    "audits": audits_round,
    "spark": spark_round,
}


def shown(table: list[Row]) -> Table:
    """The table as people read it."""
    picture = Table(title="DSS against its targets", title_justify="left")
    for name in ("what", "median", "min..max", "target", "ratio", "its target", "baseline"):
        picture.add_column(name, justify="right" if name in ("median", "ratio") else "left")
    for row in table:
        picture.add_row(
            row.name,
            f"{row.median:.2f} {row.unit}",
            f"{min(row.rounds):.2f}..{max(row.rounds):.2f}",
            row.target,
            "" if row.ratio is None else f"{row.ratio:.2f}",
            row.ratio_target,
            row.baseline,
        )
    return picture


async def measure(parts: list[str], rounds: int) -> list[Row]:
    """Run the rounds, interleaved, and return the rows that they filled."""
    table = rows()
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
    )  # fmt: skip
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("measuring", total=rounds * len(parts))
        for number in range(rounds):
            for part in parts:
                progress.update(task, description=f"round {number + 1}: {part}")
                seconds = LONG_SECONDS_MAX.get(part, PART_SECONDS_MAX)
                async with within(seconds, f"round {number + 1} of {part}"):
                    await PARTS[part](table)
                progress.advance(task)
    return [row for row in table.values() if row.rounds]


def possible() -> list[str]:
    """The parts that this machine can measure."""
    try:
        require_spark()
    except EngineMissing:
        return [part for part in PARTS if part != "spark"]
    return list(PARTS)


def main() -> None:
    """Measure, print the table, keep the rounds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("parts", nargs="*", default=possible(), help=", ".join(PARTS))
    arguments = parser.parse_args()
    filled = asyncio.run(measure(arguments.parts, arguments.rounds))
    width = None if os.isatty(1) else 160
    Console(width=width).print(shown(filled))
    if sorted(arguments.parts) == sorted(PARTS):
        write(filled)
        Console().print(f"every round: {RESULTS.relative_to(Path.cwd())}")


if __name__ == "__main__":
    main()
