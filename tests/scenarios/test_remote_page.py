"""The page on a client on another host, command by command, on this one."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from dss_core.errors import ExitCode
from support.daemon_process import short_directory
from support.dssctl_call import environment
from support.prerequisites import need_program

PAGE = Path(__file__).resolve().parents[2] / "docs" / "remote.md"
SCRIPT_S_MAX = 60.0


def commands() -> list[str]:
    """Those of the page, in order; nothing is copied to another host here."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    return [line for line in lines if not line.startswith("scp ")]


def refused() -> str:
    """The command of the page that is refused."""
    (command,) = re.findall(r"^\$ (.+)$", PAGE.read_text(), re.MULTILINE)
    return str(command)


def refusal() -> str:
    """What it is refused with, without what stands before the code."""
    (said,) = re.findall(r"^error (DSS\d+: .+)$", PAGE.read_text(), re.MULTILINE)
    return str(said)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        return port


@pytest.mark.slow("a daemon and five commands, each a process of a shell")
def test_a_client_on_another_host_is_ten_commands_away() -> None:
    for program in ("openssl", "bash"):
        need_program(program)
    port = str(free_port())
    denied = f"{refused()} && exit 1 || [ $? = {ExitCode.DENIED} ]"
    script = "\n".join([*commands(), denied]).replace("dss.example", "localhost")
    script = script.replace("0.0.0.0:7233", f"127.0.0.1:{port}").replace(":7233", f":{port}")
    assert len(commands()) == 9, "and one that copies files"
    with short_directory() as folder:
        ended = subprocess.run(
            ["bash", "-e", "-c", f"trap 'kill $!; wait' EXIT\n{script}"],
            cwd=folder,
            env=environment(
                PATH=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
                HOME=str(folder),
                DSSCTL_CONFIG=str(folder / "config.toml"),
                DSSCTL_CONNECT_WAIT="30",
            ),
            capture_output=True,
            timeout=SCRIPT_S_MAX,
            check=False,
        )
    said = ended.stderr.decode()
    assert ended.returncode == 0, said
    assert ended.stdout.decode().split()[-1] == "hello", said
    assert refusal() in said
