import ast
import asyncio
import json
import logging
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dss_core.errors import AddressInUse
from dssd.log_lines import LogFormat, log_condition, write_lines
from support.daemon_process import DaemonEnded, DaemonProcess
from support.started_program import started

DAEMON = Path(__file__).resolve().parents[2] / "daemon/dssd"
LEVELS = {"debug", "info", "warning", "error", "exception", "critical", "log"}
START_S_MAX = 60


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """The root of all loggers, as it was before when the test is over."""
    logger = logging.getLogger()
    handlers, level = logger.handlers[:], logger.level
    yield logger
    logger.handlers[:] = handlers
    logger.setLevel(level)


def objects(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_line_of_json_is_one_object_whatever_is_in_it(
    root: logging.Logger, capfd: pytest.CaptureFixture[str]
) -> None:
    log = write_lines(LogFormat.JSON)
    root.info("a\n%s", '"}\u2028', extra={"event": "some.thing", "fields": {"n": "1\n"}})
    root.warning("of a library")
    log_condition(AddressInUse(address="127.0.0.1:1", reason="taken"))
    log.flush()
    first, second, third = objects(capfd.readouterr().err)
    assert (first["event"], first["level"], first["fields"]) == ("some.thing", "info", {"n": "1\n"})
    assert first["text"] == 'a\n"}\u2028'
    assert second["event"] == "library"
    assert (third["event"], third["fields"]["address"]) == ("DSS5008", "127.0.0.1:1")
    assert third["fields"]["hint"]


def test_a_line_of_text_has_its_event(
    root: logging.Logger, capfd: pytest.CaptureFixture[str]
) -> None:
    log = write_lines(LogFormat.TEXT)
    root.info("it is so", extra={"event": "some.thing"})
    root.info("of a library")
    log.flush()
    first, second = capfd.readouterr().err.splitlines()
    assert first.endswith("INFO root [some.thing]: it is so")
    assert second.endswith("INFO root [library]: of a library")


def test_every_line_that_the_daemon_logs_has_an_event() -> None:
    bare = [
        f"{path.relative_to(DAEMON)}:{node.lineno}"
        for path in DAEMON.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in LEVELS
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "_LOG"
        and "extra" not in {keyword.arg for keyword in node.keywords}
    ]
    assert bare == []


async def test_a_daemon_that_logs_json_writes_nothing_else() -> None:
    daemon = await started("-m", "dssd", "serve", "--dev", "--log-format", "json", pipes=["stderr"])
    assert daemon.stderr is not None
    try:
        async with asyncio.timeout(START_S_MAX):
            line: dict[str, Any] = {"event": ""}
            while line["event"] != "daemon.listening":
                line = json.loads(await daemon.stderr.readline())
            daemon.terminate()
            rest = objects((await daemon.stderr.read()).decode())
            assert await daemon.wait() == 0
    finally:
        if daemon.returncode is None:
            daemon.kill()
            await daemon.wait()
    assert line["fields"]["addresses"][0].startswith("unix:")
    assert "daemon.stopping" in {line["event"] for line in rest}


async def test_what_ends_a_start_is_a_line_of_json_too(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        words = ("--data-dir", str(tmp_path / "data"), "--log-format", "json")
        with pytest.raises(DaemonEnded) as ended:
            await DaemonProcess.start(*words, "--metrics", address)
    assert ended.value.exit_code == 78
    assert [line["event"] for line in objects(ended.value.said)] == ["DSS5008"]
