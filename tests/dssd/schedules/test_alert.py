"""Hooks and addresses that behave badly: each ends its attempt with a word, in time."""

import asyncio
import os
import socket
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
import uvloop

from dss_core.errors import IllegalArgument
from dssd.descriptors import open_files
from dssd.schedules.tasks.alert import AlertFailed, Alerts, url
from support.played_schedules import Heard

DOCUMENT = {"kind": "LagAlert", "summary": "x" * 100_000}
"""Larger than a pipe."""

FORKS: list[None] = []
os.register_at_fork(before=lambda: FORKS.append(None))


def on_the_daemons_loop(work: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(work)


@pytest.fixture(autouse=True)
def _short_time(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of those that would wait for the end of the time."""
    kind = getattr(request.node, "callspec", None)
    if kind is not None and str(kind.params.get("kind")).startswith(("hang", "wait")):
        monkeypatch.setattr("dssd.schedules.tasks.alert.ALERT_TIMEOUT_S", 0.1)


def written(hooks: Path, script: str, first: str = "#!/bin/sh") -> None:
    hook = hooks / "page"
    hook.write_text(f"{first}\n{script}\n")
    hook.chmod(0o700)


async def told(hooks: Path) -> Heard:
    """What is said of one attempt."""
    said = Heard()
    try:
        await Alerts(hooks).run_hook("page", DOCUMENT, 1, said)
    except AlertFailed as failed:
        said.append(str(failed))
    return said


HOOKS = {
    "takes it": ("cat >/dev/null", "was told."),
    "ignores it": ("exit 0", "was told."),
    "closes it": ("exec <&-; exit 0", "was told."),
    "takes some": ("head -c 10 >/dev/null", "was told."),
    "fails": ("exit 7", "it ended with 7"),
    "is killed": ("kill -9 $$", "it was ended by SIGKILL"),
    "crashes": ("kill -SEGV $$", "it was ended by SIGSEGV"),
    "says nothing more": ("exec >&- 2>&-; exit 0", "was told."),
    "says much": ("head -c 500000 /dev/zero; exit 0", "was told."),
    "says no end": ("exec cat /dev/zero", "it said more than 1,048,576 bytes"),
    "says no text": (r"printf '\377\000\033[2J'; exit 0", "was told."),
    "hangs": ("sleep 60", "it did not end within 0.1 s"),
    "hangs silently": ("exec >&- 2>&-; sleep 60", "it did not end within 0.1 s"),
    "hangs and hears no signal": (
        "trap '' TERM INT HUP PIPE; sleep 60",
        "it did not end within 0.1 s",
    ),
    "leaves a child with its pipes": ("sleep 60 & exit 0", "was told."),
    "leaves a child that talks": ("(while :; do echo x; sleep 0.01; done) & exit 0", "was told."),
    "hangs, for it stops itself": ("kill -STOP $$", "it did not end within 0.1 s"),
    "goes away": ("rm -f $0; exit 0", "was told."),
}


@pytest.mark.parametrize("kind", HOOKS)
def test_whatever_a_hook_does_its_run_ends_with_a_word_and_without_a_fork(
    kind: str, tmp_path: Path
) -> None:
    script, expected = HOOKS[kind]
    written(tmp_path, script)

    async def ran() -> None:
        before = len(FORKS), open_files()
        said = await told(tmp_path)
        assert said[-1].endswith(expected), said
        assert sum(len(line) for line in said) < 10_000
        assert (len(FORKS), min(open_files(), before[1])) == before

    on_the_daemons_loop(ran())


@pytest.mark.parametrize(
    ("first", "mode"),
    [("#!/nowhere/sh", 0o700), ("no program", 0o700), ("", 0o700), ("#!/tmp", 0o700)],
)
def test_a_hook_that_cannot_be_loaded_is_said_to_be_none(
    first: str, mode: int, tmp_path: Path
) -> None:
    written(tmp_path, "exit 0", first)

    async def ran() -> None:
        assert "it cannot be run: " in (await told(tmp_path))[-1]

    on_the_daemons_loop(ran())


def test_a_hundred_hooks_that_ignore_what_they_get_leave_nothing(tmp_path: Path) -> None:
    written(tmp_path, "exit 0")

    async def ran() -> None:
        before = open_files()
        for _ in range(5):
            every = await asyncio.gather(*(told(tmp_path) for _ in range(20)))
            assert {said[-1] for said in every} == {"the hook page was told."}
        assert open_files() <= before

    on_the_daemons_loop(ran())


def test_a_hook_whose_run_is_cancelled_is_ended(tmp_path: Path) -> None:
    written(tmp_path, f"echo $$ > {tmp_path}/new; mv {tmp_path}/new {tmp_path}/pid; sleep 60")

    async def ran() -> None:
        running = asyncio.ensure_future(told(tmp_path))
        while not (tmp_path / "pid").exists():  # noqa: ASYNC110 - it is told to nobody
            await asyncio.sleep(0.001)
        running.cancel()
        await asyncio.wait([running])
        with pytest.raises(ProcessLookupError):
            os.kill(int((tmp_path / "pid").read_text()), 0)

    on_the_daemons_loop(ran())


@pytest.mark.parametrize(
    "address",
    [
        "http://[::1/",
        "http://[::g]:80/",
        "http://",
        "http:///",
        "http://:80/",
        "http:host",
        "https",
        "ftp://host/",
        "http://host:65536/",
        "http://host:-1/",
        "http://host:0/",
        "http://host:x/",
        "http://me:secret@host/",
        "http://me@host/",
        "http://@host/",
        "http://ho st/",
        "http://host/a b",
        " http://host/",
        "http://host/\r\nX-Evil: 1",
        "http://host\n/",
        "http://host/\0",
        "http://bücher.example/",
        "http://host/ü",
        "http://host/\ud800",
        "http://ho\N{FULLWIDTH SOLIDUS}st/",
        "//host/",
        "javascript:alert(1)",
    ],
)
def test_an_address_that_is_none_is_refused_where_the_schedule_is_made(address: str) -> None:
    with pytest.raises(IllegalArgument) as refused:
        url(address)
    assert "secret" not in refused.value.message
    assert refused.value.message.isprintable()


async def test_an_address_that_was_kept_from_before_fails_its_run(tmp_path: Path) -> None:
    with pytest.raises(IllegalArgument):
        await Alerts(tmp_path).post("http://[::1/", DOCUMENT, 1, Heard())


STUCK_S = 2.0
"""Of a server that nobody reads any more: the kernel lets it wait for minutes."""


@contextmanager
def served(serve: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server that treats one caller so; its address."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def run() -> None:
            try:
                peer, _ = server.accept()
                with peer:
                    peer.settimeout(STUCK_S)
                    serve(peer)
            except OSError:
                pass  # it was cut, or is stuck

        thread = Thread(target=run)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/a?b=c#d"
        thread.join()


def flooding(piece: bytes) -> Callable[[socket.socket], None]:
    """Says it without end, once the beginning of the answer was said."""

    def serve(peer: socket.socket) -> None:
        while True:
            peer.sendall(piece)

    return serve


def dripping(peer: socket.socket) -> None:
    from time import sleep

    for each in b"HTTP/1.1 200 OK\r\nX-Slow: " + b"x" * 10_000:
        peer.sendall(bytes([each]))
        sleep(0.01)


def saying(answer: bytes) -> Callable[[socket.socket], None]:
    def serve(peer: socket.socket) -> None:
        peer.recv(1 << 20)
        peer.sendall(answer)

    return serve


def hushed(peer: socket.socket) -> None:
    while peer.recv(1 << 20):
        pass


ENDLESS_BODY = b"HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n" + b"x" * 100_000
SERVERS: dict[str, tuple[Callable[[socket.socket], None], str]] = {
    "waits and says nothing": (hushed, "no answer within 0.1 s"),
    "waits between bytes": (dripping, "no answer within 0.1 s"),
    "closes at once": (lambda _peer: None, "no answer: "),
    "says what is no answer": (saying(b"\x00\xff" * 40_000 + b"\r\n"), "no answer: "),
    "says a line without end": (flooding(b"x" * 65_536), "no answer: "),
    "says headers without end": (flooding(b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 50), "no answer"),
    "waits and says so without end": (flooding(b"HTTP/1.1 100 Continue\r\n\r\n"), "no answer"),
    "says a body without end": (saying(ENDLESS_BODY), "was told."),
    "points elsewhere": (
        saying(b"HTTP/1.1 307 T\r\nLocation: http://127.0.0.1:1/\r\n\r\n"),
        "it was answered by 307",
    ),
    "says a strange status": (saying(b"HTTP/1.1 999 Odd\r\n\r\n"), "it was answered by 999"),
    "says no status": (saying(b"HTTP/1.1 abc\r\n\r\n"), "no answer: HTTP/1.1 abc"),
    "says two lengths": (
        saying(b"HTTP/1.1 204 N\r\nContent-Length: x\r\nContent-Length: 5\r\n\r\n"),
        "was told.",
    ),
}


@pytest.mark.parametrize("kind", SERVERS)
def test_whoever_is_called_the_attempt_ends_with_a_word_and_its_thread(
    kind: str, tmp_path: Path
) -> None:
    serve, expected = SERVERS[kind]
    said = Heard()

    async def ran() -> None:
        with served(serve) as address:
            try:
                await Alerts(tmp_path).post(address, DOCUMENT, 1, said)
            except AlertFailed as failed:
                said.append(str(failed))

    on_the_daemons_loop(ran())
    assert expected in said[-1], said


@pytest.mark.parametrize(
    "address",
    ["https://127.0.0.1:1/", "http://" + "a" * 300 + "/", "http://[fe80::1%25nowhere]/"],
)
async def test_an_address_that_nobody_has_fails_the_attempt(address: str, tmp_path: Path) -> None:
    with pytest.raises(AlertFailed, match="no answer"):
        await Alerts(tmp_path).post(address, DOCUMENT, 1, Heard())


async def test_a_server_without_tls_is_no_answer(tmp_path: Path) -> None:
    with served(saying(b"HTTP/1.1 200 OK\r\n\r\n")) as address:
        secure = address.replace("http:", "https:")
        with pytest.raises(AlertFailed, match=r"no answer: .*SSL"):
            await Alerts(tmp_path).post(secure, DOCUMENT, 1, Heard())


async def test_an_alert_whose_address_was_found_too_late_is_not_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, got = Event(), []

    def late(host: str, port: int, family: int, kind: int) -> list[Any]:
        found.wait(60)
        return usual(host, port, family, kind)

    def keep(peer: socket.socket) -> None:
        got.append(peer.recv(1 << 20))

    usual = socket.getaddrinfo
    monkeypatch.setattr("dssd.schedules.tasks.alert.ALERT_TIMEOUT_S", 0.05)
    with served(keep) as address:
        monkeypatch.setattr(socket, "getaddrinfo", late)
        with pytest.raises(AlertFailed, match=r"no answer within 0.05 s"):
            await Alerts(tmp_path).post(address, DOCUMENT, 1, Heard())
        found.set()
    assert got == [b""]


async def test_a_mistake_in_the_thread_of_an_alert_is_one_of_its_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("http.client.HTTPConnection.connect", lambda _self: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        await Alerts(tmp_path).post("http://127.0.0.1:1/", DOCUMENT, 1, Heard())
