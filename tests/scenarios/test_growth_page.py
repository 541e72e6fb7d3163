"""From 4 partitions and 2 members to 64 and 32 in ``docs/growth.md`` goes as the page tells it."""

import pytest

from support.daemon_process import short_directory
from support.page_blocks import blocks
from support.page_shell import bash
from support.prerequisites import need_program
from support.proof_share import only_in_proof
from support.served_daemon import served

DIFFERS = ("HOLDER", "LAG", "OLDEST")
"""Columns that are as they happen to be."""


@pytest.mark.slow("thirty-two members, two growths and four counts")
@only_in_proof
def test_the_commands_of_the_page_lead_from_four_partitions_to_sixty_four() -> None:
    for program in ("bash", "diff", "seq"):
        need_program(program)
    programs = blocks("docs/growth.md", "python")
    [story] = blocks("docs/growth.md", "console")
    with short_directory() as folder, served() as (endpoint, _):
        for name, block in zip(("payments.py", "totals.py"), programs, strict=True):
            (folder / name).write_text(block.text)
        with bash(folder, DSSCTL_ENDPOINT=endpoint) as shell:
            for each in story.commands():
                shell.shown(each.command, each.shown, DIFFERS)
