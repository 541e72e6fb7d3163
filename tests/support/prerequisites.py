"""What some proof needs of the machine: strace, a file system that can be mounted, network
namespaces, tools of Prometheus and systemd, tmux, Spark with a Java to run it, a package index
within reach.

Without it that proof is left out, and the end of the run says so. `DSS_PREREQUISITES` names what
the machine is known to have; proof that is left out there all the same fails instead, so that CI
never passes on less than it could have shown.
"""

import importlib.util
import os
import shutil

import pytest

from dss_sim import strace

STRACE = "strace"
MOUNT = "mount"
NAMESPACES = "namespaces"
PROMTOOL = "promtool"
SYSTEMD = "systemd-analyze"
BASH = "bash"
ZSH = "zsh"
FISH = "fish"
MANDOC = "mandoc"
GROFF = "groff"
TMUX = "tmux"
SPARK = "spark"
INDEX = "index"
PROMISED = "DSS_PREREQUISITES"
LEFT_OUT = "proof left out: "
"""How the reason of every such skip begins."""


def leave_out(what: str, why: str) -> None:
    """Skip the test that runs, for the machine lacks this; fail it where the machine has it."""
    if what in os.environ.get(PROMISED, "").split():
        pytest.fail(f"{what} is promised by {PROMISED}, but {why}")
    pytest.skip(f"{LEFT_OUT}{why}")


def need_program(name: str) -> str:
    """The path of a program; the test is left out where there is none."""
    found = shutil.which(name)
    if found is None:
        leave_out(name, f"there is no {name} on PATH")
    assert found is not None
    return found


def need_strace() -> None:
    """Leave the test out where nothing can be traced."""
    if why := strace.why_not():
        leave_out(STRACE, why)


def need_spark() -> None:
    """Leave the test out where there is no PySpark, or no Java for it."""
    if importlib.util.find_spec("pyspark") is None:
        leave_out(SPARK, "there is no PySpark (the extra `spark`)")
    if "JAVA_HOME" not in os.environ and shutil.which("java") is None:
        leave_out(SPARK, "there is no java on PATH")
