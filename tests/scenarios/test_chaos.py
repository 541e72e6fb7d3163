"""Members and daemon are killed, frozen, joined and left all the time; nothing may come of it.

``CHAOS=SEED:SECONDS`` runs another seed, for so long.
"""

import os
import sys
from pathlib import Path

import pytest

from support.chaos import run_chaos
from support.proof_share import share

pytestmark = pytest.mark.slow("faults, one after the other, and leases that have to end")

SEEDS, SECONDS = share(([3425], 5.0), ([3425, 349, 350], 180.0))
"""The first seconds of 3425 have every fault."""
if asked := os.environ.get("CHAOS"):
    SEEDS, SECONDS = [int(asked.split(":")[0])], float(asked.split(":")[1])


@pytest.mark.parametrize("seed", SEEDS)
async def test_no_group_loses_doubles_or_reorders_records_whatever_dies_freezes_or_comes_back(
    seed: int, tmp_path: Path
) -> None:
    summary = await run_chaos(seed, SECONDS, tmp_path)
    sys.stdout.write(f"{summary}\n")
