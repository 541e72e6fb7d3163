"""One life of the script, in a process of its own: ``python -m dss_sim.power_loss LIFE ROOT``.

The store's log is written back after a few pages and holds little, ceilings are low and files are
synced soon, so that little data reaches what otherwise only much data does.
"""

import asyncio
import faulthandler
import sys
from pathlib import Path

from dssd import limits
from dssd.loading import loading
from dssd.store import reserve, transactions

LIFE_S_MAX = 40
"""A life that hangs reports where, and ends."""

transactions.STORE_CHECKPOINT_PAGES = 24
reserve.STORE_PAGES_BYTES_KEPT = 32 << 10
reserve.STORE_WAL_BYTES_KEPT = 128 << 10
limits.CEILING_AHEAD_MIN = limits.CEILING_AHEAD_MAX = 8
limits.OS_SYNC_S = 0.1

if __name__ == "__main__":
    # After the limits were set, because modules take them when they are loaded.
    with loading():
        from dss_sim.power_loss.script import LIVES

    faulthandler.dump_traceback_later(LIFE_S_MAX, exit=True)
    asyncio.run(LIVES[sys.argv[1]](Path(sys.argv[2])))
