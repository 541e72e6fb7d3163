"""Whether a client says that a daemon was restored."""

import logging

import pytest

from dss_client._known_data import KnownData


def test_other_data_is_told_once_and_an_older_daemon_says_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, "dss_client")
    data = KnownData("the producer of orders")
    for incarnation in (b"", b"a", b"a", b""):
        data.note(incarnation)
    assert caplog.messages == []
    data.note(b"b")
    data.note(b"b")
    [said] = caplog.messages
    assert "the producer of orders" in said
    assert "restored from a backup" in said
