"""The page from an empty machine to a restore, command by command, in a directory of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.daemon_process import short_directory
from support.dssctl_call import environment
from support.page_blocks import blocks
from support.prerequisites import need_program
from support.proof_share import only_in_proof

SCRIPT_S_MAX = 120.0


def commands() -> list[str]:
    """Those of the page, in order."""
    found = blocks("docs/running.md", "sh")
    return [each.command for block in found for each in block.commands()]


@only_in_proof
@pytest.mark.slow("two daemons, a restore and thirty commands, each a process of a shell")
def test_the_page_leads_from_nothing_over_a_restore_to_an_upgrade() -> None:
    for program in ("bash", "gzip"):
        need_program(program)
    script = "\n".join(commands()).replace("127.0.0.1:9464", "127.0.0.1:0")
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
        shown = ended.stdout.decode()
        assert "hello" in shown
        assert "again" in shown
        assert "restored backup 3" in shown
        assert (folder / "dss.tar.gz").stat().st_size
        assert said.count("all is whole") == 4
