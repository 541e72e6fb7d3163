"""Every recipe of docs/client.md, run as it stands."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.recipes import recipes

REPO = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("sort", ["async", "sync"])
def test_the_recipes_work(sort: str, endpoint: str) -> None:
    # What gRPC says of itself, where a program has loaded it before the client.
    quiet = {"GRPC_VERBOSITY": "NONE"}
    path = os.pathsep.join([str(REPO / "tests"), *sys.path])
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "support.recipes", sort],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=os.environ | quiet | {"DSSCTL_ENDPOINT": endpoint, "PYTHONPATH": path},
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_there_are_recipes_of_both_sorts() -> None:
    assert len(recipes(with_asyncio=True)) > 8
    assert len(recipes(with_asyncio=False)) > 12
