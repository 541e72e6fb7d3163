"""A daemon that ends a connection which says nothing only after minutes: ``patient_daemon.py
ARGUMENTS OF DSSD``.
"""

import sys

from dssd import limits
from dssd.rpc import limits as rpc_limits

LONG_MS = 600_000

rpc_limits.HANDSHAKE_TIMEOUT_MS = LONG_MS
# What says nothing answers no ping either.
limits.KEEPALIVE_TIME_MS = limits.PING_TIMEOUT_MS = LONG_MS

if __name__ == "__main__":
    # After the limits, for modules take them in when they are loaded.
    assert "dssd.rpc.server" not in sys.modules, "start it from nothing"
    from dssd.__main__ import main

    sys.exit(main(sys.argv[1:]))
