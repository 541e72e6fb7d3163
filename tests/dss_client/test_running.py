"""A program that is interrupted."""

import signal
import subprocess
import sys

TIMEOUT_S = 60
PROGRAM = """
import asyncio, dss_client

async def main() -> None:
    try:
        print("runs", flush=True)
        await asyncio.Event().wait()
    finally:
        print("closed", flush=True)

dss_client.run(main())
"""


async def _seven() -> int:
    return 7


def test_what_the_coroutine_returns_is_returned() -> None:
    from dss_client import run

    assert run(_seven()) == 7


def test_ctrl_c_closes_what_is_open_and_prints_no_traceback() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"runs\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, out, err) == (130, b"closed\n", b"")
