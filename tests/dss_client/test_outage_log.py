import logging

import pytest

import dss_client
from dss_client._outage_log import Outage
from dss_client.testing import MemoryDaemon, until
from dss_core.errors import OutcomeUnknown, Unreachable


def test_an_outage_is_two_lines_however_long_it_takes(caplog: pytest.LogCaptureFixture) -> None:
    outage = Outage("the session", "unix:/d")
    outage.ended()
    for _ in range(2):
        outage.began(OutcomeUnknown())
        outage.began(Unreachable(endpoint="unix:/d"))
        outage.ended()
        outage.ended()
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * 4
    assert caplog.messages[:2] == caplog.messages[2:]
    assert "before the answer came" in caplog.messages[0]


async def test_a_lost_session_says_so_and_that_it_is_back(
    daemon: MemoryDaemon, caplog: pytest.LogCaptureFixture
) -> None:
    async with (
        dss_client.connect(endpoint=daemon.endpoint) as client,
        client.subscribe("$share/g/t/#"),
    ):
        await daemon.cut()
        await until(lambda: len(caplog.messages) == 1)
        await daemon.start()
        await until(lambda: len(caplog.messages) == 2)
    assert "the session lost its connection" in caplog.messages[0]
    assert "is connected" in caplog.messages[1]


async def test_leaving_is_no_outage(daemon: MemoryDaemon, caplog: pytest.LogCaptureFixture) -> None:
    async with (
        dss_client.connect(endpoint=daemon.endpoint) as client,
        client.producer("t") as producer,
        client.subscribe("$share/g/t/#"),
    ):
        await producer.send(b"x")
    assert caplog.messages == []
