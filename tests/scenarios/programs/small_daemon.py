"""A daemon whose segments and reserve are small and whose retention looks often, so that little
data meets what much data meets: ``small_daemon.py ARGUMENTS OF DSSD``.
"""

import sys

from dssd import limits
from dssd.store import reserve

limits.SEGMENT_BYTES_MAX = 32 << 10
limits.WATERMARK_BYTES = 24 << 10
limits.RETENTION_INTERVAL_S = 0.05
reserve.STORE_PAGES_BYTES_KEPT = 256 << 10

if __name__ == "__main__":
    # After the limits, for modules take them in when they are loaded.
    assert "dssd.daemon" not in sys.modules, "start it from nothing"
    from dssd.__main__ import main

    sys.exit(main(sys.argv[1:]))
