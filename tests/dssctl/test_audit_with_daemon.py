"""``dssctl sessions`` and ``dssctl audit`` against a daemon process."""

import asyncio
import getpass
import time
from typing import Any, Protocol

import dss_client
from support.dssctl_call import Completed, items

PATIENCE_S = 60.0


class Process(Protocol):
    endpoint: str

    def dssctl(self, *arguments: str) -> Completed: ...


def ok(done: Completed) -> str:
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def test_sessions_are_listed_and_closed(daemon: Process) -> None:
    ok(daemon.dssctl("topics", "create", "visited"))

    async def kept() -> None:
        client = dss_client.connect("guest", session_expiry=60, endpoint=daemon.endpoint)
        async with client, client.subscribe("visited/#"):
            pass

    asyncio.run(kept())
    [session] = items(daemon.dssctl("sessions", "ls", "-o", "json"))
    assert (session["client_id"], session["state"], session["peer"]) == ("guest", "detached", None)
    assert (session["subscriptions"], session["private_subscriptions"]) == (1, 1)
    assert "1m00s" in ok(daemon.dssctl("sessions", "ls", "-o", "wide"))
    ok(daemon.dssctl("sessions", "close", "guest", "-y", "--reason", "gone"))
    assert items(daemon.dssctl("sessions", "ls", "-o", "json")) == []
    again = daemon.dssctl("sessions", "close", "guest", "-y")
    assert again.returncode == 5
    assert b"error DSS6003: " in again.stderr


def test_the_audit_lists_what_was_changed_and_what_was_refused(daemon: Process) -> None:
    ok(daemon.dssctl("topics", "create", "audited"))
    ok(daemon.dssctl("topics", "edit", "audited", "--retention", "1d", "-y", "--reason", "less"))
    assert daemon.dssctl("topics", "create", "audited").returncode == 6
    me = f"local:{getpass.getuser()}"
    asked = ("audit", "ls", "--since", "-1h", "--principal", me, "-o", "json")

    calls: list[dict[str, Any]] = []
    until_s = time.monotonic() + PATIENCE_S
    while len(calls) < 3 and time.monotonic() < until_s:  # events are kept a second later
        found = items(daemon.dssctl(*asked))
        calls = [call for call in found if call["subject"] == "audited"]
    assert [(call["method"], call["outcome"]) for call in calls] == [
        ("Topics/Create", "done"),
        ("topics.edit", "done"),
        ("Topics/Create", "DSS2002"),
    ]
    assert calls[1]["reason"] == "less"
    assert calls[0]["user"] == getpass.getuser()
    assert len(items(daemon.dssctl("audit", "ls", "-n", "1", "-o", "json"))) == 1
    assert items(daemon.dssctl("audit", "ls", "--principal", "nobody", "-o", "json")) == []
    shown = ok(daemon.dssctl("audit", "ls"))
    assert "asked to create the topic audited: done" in shown
    assert "audited" in ok(daemon.dssctl("audit", "ls", "-o", "wide"))
