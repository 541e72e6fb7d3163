"""The bar of a reading: on a terminal, and nowhere else."""

import sys

import pexpect
import pytest

from dss_client.sync import Client

SCRIPT = """
import sys, dss_client.sync
with dss_client.sync.connect(endpoint=sys.argv[1]) as client:
    for given in ({}, {"records_max": 1_233}, {"start": "-1h"}):
        read = client.read(sys.argv[2], progress=True, **given)
        print(sum(1 for record in read), "were read")
"""


@pytest.fixture
def filled(client: Client, topic: str) -> str:
    with client.producer(topic) as producer:
        for _ in range(1_234):
            producer.enqueue(b"x")
    return topic


def test_a_person_sees_how_much_was_read(endpoint: str, filled: str) -> None:
    child = pexpect.spawn(
        sys.executable,
        ["-c", SCRIPT, endpoint, f"{filled}/#"],
        encoding="utf-8",
        timeout=30,
        dimensions=(24, 80),
    )
    for count in (1_234, 1_233, 1_234):
        child.expect_exact(f"{count:,} records")
        child.expect_exact(f"{count} were read")
    child.expect(pexpect.EOF)


def test_without_a_terminal_there_is_no_bar(
    client: Client, filled: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert sum(1 for _ in client.read(f"{filled}/#", progress=True)) == 1_234
    assert capfd.readouterr() == ("", "")
