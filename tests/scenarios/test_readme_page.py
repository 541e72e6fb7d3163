"""The README up to the first shared record, command by command, in a directory of its own."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.daemon_process import short_directory
from support.dssctl_call import environment
from support.page_blocks import blocks
from support.prerequisites import need_program
from support.proof_share import only_in_proof

SCRIPT_S_MAX = 60.0


def script() -> str:
    """The commands of the section, with the documents that they are given; no output."""
    found = blocks("README.md", "sh", "console", section="The first shared record")
    return "\n".join(each.command for block in found for each in block.commands())


@only_in_proof
@pytest.mark.slow("two daemons, two members and a dozen commands, each a process of a shell")
def test_the_readme_leads_to_shared_records_over_kills() -> None:
    need_program("bash")
    commands = script().replace(". .venv/bin/activate", ":")
    with short_directory() as folder:
        ended = subprocess.run(
            ["bash", "-c", f"trap 'kill $(jobs -p); wait' EXIT\n{commands}"],
            cwd=folder,
            env=environment(
                PATH=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
                HOME=str(folder),
                DSSCTL_CONFIG=str(folder / "config.toml"),
            ),
            capture_output=True,
            timeout=SCRIPT_S_MAX,
            check=False,
        )
        said, shown = ended.stderr.decode(), ended.stdout.decode()
        assert ended.returncode == 0, said
        assert "error" not in said.lower(), said
        assert re.search(r"orders/0/3 +1 +orders +ada", shown)
        assert re.search(r"orders/0/\d +granted +bert", shown)
        assert re.search(r"billing +orders/# +\w+ +\d +4 ", shown)
