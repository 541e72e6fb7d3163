"""The page on a client on another host, command by command, on this one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dss_core.errors import ExitCode
from support.daemon_process import short_directory
from support.dssctl_call import environment
from support.page_blocks import blocks
from support.page_world import free_port
from support.prerequisites import need_program
from support.proof_share import only_in_proof

SCRIPT_S_MAX = 60.0


def commands() -> list[str]:
    """Those of the page, in order."""
    found = blocks("docs/remote.md", "sh")
    return [each.command for block in found for each in block.commands()]


def transcript() -> list[tuple[str, str]]:
    """The commands of who may only read, each with what it says at the end."""
    (block,) = blocks("docs/remote.md", "")
    return [(each.command, each.shown.strip()) for each in block.commands()]


def as_a_script(command: str, said: str) -> str:
    """It, and a check of what it said."""
    denied = said.startswith("error ")
    expected = ExitCode.DENIED if denied else ExitCode.OK
    quoted = said.removeprefix("error ").replace("'", "'\\''")
    return (
        f"set +e; said=$(set -o pipefail; {command} 2>&1); code=$?; set -e\n"
        f'[ $code = {int(expected)} ] || {{ echo "$said"; exit 1; }}\n'
        f"case $said in *'{quoted}'*) ;; *) echo \"$said\"; exit 1;; esac"
    )


WATCHER = """
dssctl --endpoint unix:dssd.sock tokens add watcher --role read --topic 'orders/#' --group '*' --to watcher.token
dssctl contexts add look --endpoint dss://dss.example:7233 --tls-ca ca.pem --token-file watcher.token
"""  # noqa: E501 - as the page has it


@only_in_proof
@pytest.mark.slow("a daemon and five commands, each a process of a shell")
def test_a_client_on_another_host_is_ten_commands_away() -> None:
    for program in ("openssl", "bash"):
        need_program(program)
    port = str(free_port())
    looks = [as_a_script(*each) for each in transcript()]
    script = "\n".join([*commands(), WATCHER, *looks]).replace("dss.example", "localhost")
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
    said = ended.stderr.decode() + ended.stdout.decode()
    assert ended.returncode == 0, said
    assert "hello" in ended.stdout.decode().split(), said
