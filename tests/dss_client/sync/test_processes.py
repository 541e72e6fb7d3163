"""The client without asyncio at the edges of a process: its end, Ctrl-C, fork."""

import os
import subprocess
import sys

import pytest

BEGIN = """
import os, sys, dss_client.sync as sync
from dss_core.errors import OpenedBeforeFork
endpoint = sys.argv[1]

def in_child(work):
    sys.stdout.flush()
    child = os.fork()
    if child:
        assert os.waitpid(child, 0)[1] == 0
        return
    work()
    sys.stdout.flush()
    os._exit(0)
"""

BEFORE = """
def nothing_works():
    for call in (client.daemon.status, client.close, lambda: sync.connect(endpoint=endpoint)):
        try:
            call()
        except OpenedBeforeFork as error:
            assert error.fields["process"] == str(os.getppid())
        else:
            raise AssertionError

client = sync.connect(endpoint=endpoint)
client.daemon.status()
in_child(nothing_works)
print(client.daemon.status().state)
"""

AFTER = """
def works():
    with sync.connect(endpoint=endpoint) as own:
        print(own.daemon.status().state)

in_child(works)
works()

def is_refused():
    try:
        works()
    except OpenedBeforeFork:
        return
    raise AssertionError

in_child(is_refused)
"""

UNCLOSED = """
client = sync.connect(endpoint=endpoint)
client.topics.create("unclosed", partitions=1)
with client.producer("unclosed") as producer:
    producer.send(b"x")
records = iter(client.subscribe("$share/g/unclosed/#", start="earliest").__enter__())
next(records).ack()
watching = client.watch()
next(watching)
print("over")
"""

ASYNC = """
import asyncio, dss_client

async def asked():
    async with dss_client.connect(endpoint=endpoint) as client:
        return (await client.daemon.status()).state

def is_refused():
    try:
        asyncio.run(asked())
    except OpenedBeforeFork:
        return
    raise AssertionError

print(asyncio.run(asked()))
in_child(is_refused)
"""

INTERRUPTED = """
import threading, signal
client = sync.connect(endpoint=endpoint)
client.topics.create("interrupted", partitions=1)
with client.subscribe("$share/g/interrupted/#") as subscription:
    # From a thread that comes to it while the main one waits.
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        next(iter(subscription))
    except KeyboardInterrupt:
        print("interrupted")
print(client.daemon.status().state)
"""


RUN_INTERRUPTED = """
import logging, signal, threading, time
failed = []
logging.getLogger("dss_client").addFilter(lambda line: failed.append(line.getMessage()))
client = sync.connect(endpoint=endpoint)
client.topics.create("cut", partitions=1)
with client.producer("cut") as producer:
    for number in range(300):
        producer.enqueue(b"%d" % number)
handled = set()
presses = [50, 100, 150, 200, 250]
lock = threading.Lock()

def handle(record):
    handled.add(record.payload)
    with lock:
        pressed = presses and len(handled) >= presses[0] and presses.pop(0)
    if pressed:
        os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.001)
    if len(handled) == 300:
        subscription.drain()

with client.subscribe("$share/cut/cut/#", start="earliest") as subscription:
    interrupted = 0
    while len(handled) < 300:
        try:
            subscription.run(handle, concurrency=8)
        except KeyboardInterrupt:
            interrupted += 1
print(interrupted > 2, failed)
"""


def run(script: str, endpoint: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", BEGIN + script, endpoint],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_child_of_a_fork_is_told_why_an_open_client_cannot_be_used(endpoint: str) -> None:
    done = run(BEFORE, endpoint)
    assert (done.returncode, done.stdout, done.stderr) == (0, "serving\n", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_child_of_a_fork_has_a_client_unless_one_was_ever_opened_before(endpoint: str) -> None:
    done = run(AFTER, endpoint)
    assert (done.returncode, done.stdout, done.stderr) == (0, "serving\n" * 2, "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_child_of_a_fork_is_told_that_a_client_with_asyncio_cannot_be_opened_either(
    endpoint: str,
) -> None:
    done = run(ASYNC, endpoint)
    assert (done.returncode, done.stdout, done.stderr) == (0, "serving\n", "")


def test_a_program_that_closes_nothing_ends_and_what_it_acknowledged_counts(endpoint: str) -> None:
    done = run(UNCLOSED, endpoint)
    assert (done.returncode, done.stdout, done.stderr) == (0, "over\n", "")
    import dss_client.sync

    with dss_client.sync.connect(endpoint=endpoint) as client:
        (group,) = client.groups.list(filter="filter=unclosed/#")
        assert (group.lag, group.fates.acked) == (0, 1)


def test_ctrl_c_ends_the_wait_and_leaves_the_client_usable(endpoint: str) -> None:
    done = run(INTERRUPTED, endpoint)
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted\nserving\n", "")


def test_ctrl_c_ends_a_run_and_no_record_fails_by_that(endpoint: str) -> None:
    done = run(RUN_INTERRUPTED, endpoint)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True []\n", "")
