"""Signals that come while a loop waits."""

import asyncio
import signal
import threading
from collections.abc import Iterator

import pytest

from dss_client.interrupts import heard_at_once

PATIENCE_S = 60.0


@pytest.fixture
def heard() -> Iterator[asyncio.Event]:
    """Set by a handler of SIGUSR1."""
    event = asyncio.Event()
    before = signal.signal(signal.SIGUSR1, lambda *_: event.set())
    yield event
    signal.signal(signal.SIGUSR1, before)


async def test_a_signal_that_interrupts_no_wait_of_the_loop_wakes_it(heard: asyncio.Event) -> None:
    go = threading.Event()

    def send() -> None:
        # To this thread: as one that comes just before the loop waits, it ends no wait by itself.
        go.wait()
        signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)

    other = threading.Thread(target=send)
    other.start()
    with heard_at_once():
        loop = asyncio.get_running_loop()
        until_s = loop.time() + PATIENCE_S
        async with asyncio.timeout_at(until_s):
            # It runs on once the loop has let go of the interpreter, to wait.
            go.set()
            await heard.wait()
        assert loop.time() < until_s, "nothing but the end of the patience woke it"
    other.join()


async def test_what_woke_a_loop_before_does_so_again(heard: asyncio.Event) -> None:
    before = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(before)
    with heard_at_once():
        assert signal.set_wakeup_fd(-1) != before
    assert signal.set_wakeup_fd(before) == before


async def test_in_another_thread_nothing_is_changed() -> None:
    async def entered() -> None:
        with heard_at_once():
            pass

    await asyncio.to_thread(asyncio.run, entered())
