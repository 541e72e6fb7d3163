"""Opens so many connections to a unix socket, says so, and holds them until its input ends."""

import resource
import socket
import sys


def main() -> None:
    """Hold them; those that the other side refuses count as opened."""
    path, count = sys.argv[1], int(sys.argv[2])
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    held = []
    for _ in range(count):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(path)
        held.append(connection)
    sys.stdout.write(f"{len(held)}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
