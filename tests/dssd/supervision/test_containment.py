"""What of the daemon goes on after a mistake, and what must not."""

import asyncio
import errno
import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dss_core.errors import DiskFailed, Overloaded, StoreDamaged
from dssd.events.model import Event
from dssd.leaders.bans import ban_of
from dssd.machines.schedule import step
from dssd.store.keys import key_of
from dssd.supervision import containment
from dssd.supervision.containment import (
    StateUnknown,
    between_store_and_memory,
    contain,
    contained,
    kept,
)

NOTHING = cast("Any", None)


def raised(work: Callable[[], object]) -> Exception:
    try:
        work()
    except Exception as error:  # noqa: BLE001 - whatever it is
        return error
    raise AssertionError("it raised nothing")


def raise_(error: Exception) -> None:
    raise error


@pytest.fixture
def told() -> list[Event]:
    return []


@pytest.mark.parametrize(
    ("work", "error"),
    [
        (lambda: 1 // 0, "ZeroDivisionError: integer division or modulo by zero"),
        (lambda: step(NOTHING, NOTHING), "AssertionError: Expected code to be unreachable"),
        (lambda: raise_(Overloaded(what="It", limit=1)), "Overloaded: "),
        (lambda: raise_(OSError(errno.EMFILE, "Too many open files")), "OSError: [Errno 24]"),
        (lambda: raise_(ExceptionGroup("many", [KeyError("a\nb")])), "KeyError: 'a"),
        (lambda: raise_(MemoryError()), "MemoryError"),
        (lambda: raise_(ValueError("x" * 1_000)), "ValueError: xxx"),
    ],
)
def test_a_mistake_beside_the_core_is_told_and_not_raised(
    work: Callable[[], object], error: str, told: list[Event], caplog: pytest.LogCaptureFixture
) -> None:
    before = contained["a part"]
    containment._logged_s.clear()
    condition = contain("a part", raised(work), told.append)
    assert condition.message.startswith(
        f"An unforeseen error of the daemon in a part ended this: {error}"
    )
    assert len(condition.message) < 400
    [event] = told
    assert (event.kind.code, event.subject) == ("internal.error", "a part")
    assert error in event.sentence
    assert contained["a part"] == before + 1
    assert [bool(each.exc_info) for each in caplog.records] == [True]


@pytest.mark.parametrize(
    "work",
    [
        lambda: ban_of(NOTHING, NOTHING),
        lambda: key_of(NOTHING),
        lambda: raise_(DiskFailed(reason="gone")),
        lambda: raise_(StoreDamaged(path="store.sqlite", reason="bits")),
        lambda: raise_(
            ExceptionGroup("both", [KeyError(), raised(lambda: ban_of(NOTHING, NOTHING))])
        ),
        lambda: raise_(ExceptionGroup("both", [ExceptionGroup("in", [DiskFailed(reason="gone")])])),
    ],
)
def test_what_the_core_raises_is_raised_on(work: Callable[[], object], told: list[Event]) -> None:
    error = raised(work)
    with pytest.raises(type(error)) as again:
        contain("a part", error, told.append)
    assert again.value is error
    assert told == []


def test_between_a_commit_and_memory_no_mistake_is_contained(told: list[Event]) -> None:
    def work() -> None:
        with between_store_and_memory():
            raise KeyError("a mistake of a kind of operations")

    error = raised(work)
    assert isinstance(error.__cause__, KeyError)
    with pytest.raises(StateUnknown):
        contain("a part", error, told.append)


def test_a_part_that_fails_all_the_time_fills_no_log(
    told: list[Event], caplog: pytest.LogCaptureFixture
) -> None:
    containment._logged_s.clear()
    for _ in range(100):
        contain("a part", KeyError("k"), told.append)
    assert len(told) == 100
    assert len(caplog.records) == 1


async def test_a_service_begins_anew_after_pauses_that_grow_up_to_a_bound(
    told: list[Event], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    pauses: list[float] = []

    async def sleep(pause_s: float) -> None:
        pauses.append(pause_s)

    monkeypatch.setattr(
        containment, "asyncio", SimpleNamespace(sleep=sleep, current_task=asyncio.current_task)
    )

    async def run() -> None:
        if len(pauses) < 9:
            raise KeyError

    await kept("a service", run, told.append)
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert len(told) == 9


async def test_a_service_that_is_cancelled_ends(told: list[Event]) -> None:
    running = asyncio.create_task(kept("a service", lambda: asyncio.sleep(600), told.append))
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert told == []


async def test_a_service_that_fails_as_it_is_cancelled_ends_too(
    told: list[Event], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)

    async def run() -> None:
        try:
            await asyncio.sleep(600)
        finally:
            raise KeyError

    running = asyncio.create_task(kept("a service", run, told.append))
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert len(told) == 1
