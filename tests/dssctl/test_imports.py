"""What must not be loaded, seen in a fresh process: the clock of a busy machine proves nothing."""

import os
import subprocess
import sys

import pytest

from dssctl import VERSION

SLOW = ("grpc", "pyarrow", "rich.console", "asyncio", "google.protobuf", "dss_client")


def modules_after(*arguments: str) -> set[str]:
    """The modules that one command line has loaded, whatever its outcome."""
    program = (
        "import sys; from dssctl.main import main; main();"
        "sys.stderr.write('\\nMODULES ' + ' '.join(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        check=True,
        text=True,
        env=os.environ | {"DSSCTL_CONNECT_WAIT": "0", "DSSCTL_CONFIG": os.devnull},
    )
    return set(done.stderr.rpartition("MODULES ")[2].split())


def modules_after_start(*arguments: str) -> set[str]:
    """Those of them that Python, its site packages and this look itself had not loaded."""
    return modules_after(*arguments) - modules_after("version")


def test_version_is_answered_before_typer_is_loaded() -> None:
    loaded = modules_after("version")
    assert not loaded & {"typer", "dssctl.tree", *SLOW}


def test_the_help_of_the_program_is_read_with_next_to_nothing_loaded() -> None:
    loaded = modules_after("--help")
    ours = {name for name in loaded if "dss" in name}
    assert ours == {"dssctl", "dssctl.main", "dssctl.ready_help"}
    assert not modules_after_start("--help") & {"typer", "typing", "pathlib", "shutil", "re", *SLOW}


def test_names_for_completion_are_answered_with_next_to_nothing_loaded() -> None:
    ours = {name for name in modules_after("__complete", "topics", "") if "dss" in name}
    completing = {name for name in ours if name.startswith("dssctl.completing")}
    assert ours - completing == {"dssctl", "dssctl.main"}
    assert completing == {
        "dssctl.completing",
        "dssctl.completing.answering",
        "dssctl.completing.names_kept",
    }
    slow = ("typer", "typing", "pathlib", "subprocess", "json", "re", *SLOW)
    assert not modules_after_start("__complete", "topics", "") & {*slow}


@pytest.mark.parametrize(
    "arguments",
    [("-q", "--help"), *((name, "--help") for name in ("groups", "consume", "produce", "events"))],
)
def test_help_loads_nothing_slow(arguments: tuple[str, ...]) -> None:
    assert not modules_after(*arguments) & {*SLOW, "typer.rich_utils"} - {"asyncio"}


def test_the_programs_help_loads_no_command() -> None:
    loaded = {name for name in modules_after("--help") if name.startswith("dssctl.commands.")}
    assert loaded == set()


def test_an_administration_command_loads_no_pyarrow_and_no_rich() -> None:
    loaded = modules_after("--endpoint", "unix:/nowhere/s", "groups", "ls")
    assert "grpc" in loaded
    assert not loaded & {"pyarrow", "rich.console", "yaml", "platformdirs"}


def test_a_list_that_is_shown_as_it_comes_loads_no_grammar() -> None:
    nobody = ("--endpoint", "unix:/nowhere/s", "groups", "ls")
    seldom = {"dss_core.conditions", "tomllib", "tomlkit", "shlex"}
    seldom |= {"dss_client.answers", "dss_client.offsets", "dss_core.filters", "dssctl.advice"}
    assert not modules_after(*nobody) & seldom
    assert "dss_core.conditions" in modules_after("errors", "ls", "--filter", "code=DSS2001")


def test_yaml_is_loaded_where_it_is_asked_for() -> None:
    assert "yaml" in modules_after("errors", "ls", "-o", "yaml")
    assert "yaml" not in modules_after("errors", "ls", "-o", "json")


def test_the_version_is_that_of_the_distribution() -> None:
    from importlib.metadata import version

    assert version("dss") == VERSION


def test_the_first_picture_of_the_dashboard_waits_for_no_slow_module() -> None:
    program = (
        "import dssctl.invocation, dssctl.commands.top, dssctl.top.run, sys; print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, check=True)
    assert not {*done.stdout.decode().split()} & {"textual", *SLOW} - {"dss_client"}
