"""gRPC's own log, which the daemon keeps silent.

gRPC's core writes to stderr by itself, past Python's logging, and puts text of its peers there as
it came: a line break in the debug text of a GOAWAY forged lines of the daemon's log. The daemon
reports on calls by statuses and events instead. Must not be loaded after gRPC, which reads its
environment once.
"""

import os

_LEVEL = "GRPC_VERBOSITY"


def silence() -> None:
    """Have gRPC write nothing, whatever the environment asks for. To be called before it loads."""
    os.environ[_LEVEL] = "NONE"
