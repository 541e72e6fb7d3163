"""Opens so many connections to a unix socket, says so, and holds them until its input ends.

It says nothing on them, and reads what comes, as any peer does that is not frozen.
"""

import resource
import selectors
import socket
import sys
from contextlib import suppress

READ_BYTES = 1 << 16


def main() -> None:
    """Hold them; those that the other side refuses count as opened."""
    path, count = sys.argv[1], int(sys.argv[2])
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    held = [socket.socket(socket.AF_UNIX) for _ in range(count)]
    for connection in held:
        connection.connect(path)
    sys.stdout.write(f"{count}\n")
    sys.stdout.flush()
    with selectors.DefaultSelector() as readable:
        readable.register(sys.stdin, selectors.EVENT_READ)
        for connection in held:
            readable.register(connection, selectors.EVENT_READ)
        while not any(_is_over(readable, key.fileobj) for key, _ in readable.select()):
            continue


def _is_over(readable: selectors.BaseSelector, ready: object) -> bool:
    """Take what came; whether the input ended."""
    if isinstance(ready, socket.socket):
        came = b""
        with suppress(ConnectionError):
            came = ready.recv(READ_BYTES)
        if not came:
            readable.unregister(ready)
        return False
    return True


if __name__ == "__main__":
    main()
