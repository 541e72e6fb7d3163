"""The pages of the manual: legible to man, complete, and true to the programs."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from dss_core.errors import ExitCode
from dssctl.tree import COMMANDS
from dssd.config import FILE_KEYS, configure
from support.prerequisites import GROFF, MANDOC, need_program

REPO = Path(__file__).resolve().parents[2]
sys.path.append(str(REPO / "scripts"))

import manual_facts as facts  # noqa: E402 -- it is no package

PAGES = sorted((REPO / "man").glob("man*/*"))
EXAMPLES = tomllib.loads((REPO / "scripts/manual_examples.toml").read_text())


def test_every_page_passes_mandocs_lint() -> None:
    command = [need_program(MANDOC), "-T", "lint", "-W", "warning", *map(str, PAGES)]
    said = subprocess.run(command, capture_output=True, check=False, text=True)
    assert (said.returncode, said.stdout) == (0, "")


def test_every_page_is_formatted_without_a_warning() -> None:
    for page in PAGES:
        command = [need_program(GROFF), "-man", "-ww", "-z", str(page)]
        said = subprocess.run(command, capture_output=True, check=False, text=True)
        assert (said.returncode, said.stderr) == (0, ""), page.name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_has_a_name_that_whatis_finds_and_ends_with_others(page: Path) -> None:
    source = page.read_text()
    plain = source.replace("\\-", "-").splitlines()
    assert plain[plain.index(".SH NAME") + 1].startswith(f"{page.stem} - ")
    assert ".SH SEE ALSO" in source


def test_pages_that_are_named_are_there() -> None:
    there = {page.name for page in PAGES}
    for page in PAGES:
        named = re.findall(r"^\.BR (\S+) \((\d)\)", page.read_text(), re.MULTILINE)
        assert {f"{name}.{section}".replace("\\-", "-") for name, section in named} <= there


def test_there_is_a_page_and_an_example_for_every_command_of_the_first_level() -> None:
    assert {f"dssctl-{name}.1" for name in COMMANDS} <= {page.name for page in PAGES}
    assert EXAMPLES.keys() == {"dssctl", *COMMANDS}


def test_every_exit_code_of_the_tool_has_its_row() -> None:
    assert facts.EXIT_STATUS.keys() == {int(each) for each in ExitCode}


def test_every_variable_that_the_tool_reads_has_its_row() -> None:
    read = set()
    for folder in ("cli/dssctl", "client/dss_client"):
        for path in (REPO / folder).rglob("*.py"):
            literals = (each for each in ast.walk(ast.parse(path.read_text())))
            read |= {
                each.value
                for each in literals
                if isinstance(each, ast.Constant)
                and isinstance(each.value, str)
                and re.fullmatch(r"(DSSCTL|XDG)_[A-Z_]+|NO_COLOR|[A-Z]+_USER_DIR", each.value)
            }
    assert read - NAMED_BY_OTHERS <= facts.ENVIRONMENT.keys()


NAMED_BY_OTHERS = {"DSSCTL_CONTEXT", "DSSCTL_CONFIG"}
"""Completion minds them, for whoever reads them."""


def test_every_key_of_the_daemons_file_has_its_row_and_the_example_is_valid(
    tmp_path: Path,
) -> None:
    assert facts.KEYS.keys() == set(FILE_KEYS)
    file = tmp_path / "dssd.toml"
    file.write_text(facts.CONFIGURATION)
    assert tomllib.loads(facts.CONFIGURATION).keys() == set(FILE_KEYS)
    assert len(configure(data_dir=None, listen=(), file=file).listen) == 2
