"""A peer that speaks HTTP/2 by hand, so that it may stop in the middle of anything.

Invariant: it sends only what it is told to, and reads nothing unless it is told to; it answers
neither settings nor pings by itself.
"""

import socket
import struct
from pathlib import Path
from typing import Self

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RESET, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
ACK = 0x1
END_HEADERS = 0x4
FRAME_BYTES_MAX = 16_384
"""What a peer takes that did not say otherwise."""

_HEAD = struct.Struct(">I")


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """One frame of HTTP/2."""
    head = _HEAD.pack(len(payload) << 8 | kind) + bytes([flags]) + _HEAD.pack(stream)
    return head + payload


def message_head(size_bytes: int) -> bytes:
    """What gRPC puts before a message of that size."""
    return b"\0" + _HEAD.pack(size_bytes)


class RawPeer:
    """One connection to a server on a unix socket. A context manager that closes it."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(path))
        self._streams = 0

    def __enter__(self) -> Self:
        """Nothing is sent yet."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection."""
        self.socket.close()

    def greet(self) -> None:
        """Begin as every client must."""
        self.send(PREFACE + frame(SETTINGS, 0, 0, b"") + frame(SETTINGS, ACK, 0, b""))

    def send(self, data: bytes) -> None:
        """Send these bytes, all of them."""
        self.socket.sendall(data)

    def call(self, method: str, agent: str = "raw") -> int:
        """Open a call without its message; returns its stream."""
        stream = 2 * self._streams + 1
        self._streams += 1
        fields = (
            (":method", "POST"),
            (":scheme", "http"),
            (":path", method),
            (":authority", "localhost"),
            ("te", "trailers"),
            ("content-type", "application/grpc"),
            ("user-agent", agent),
        )
        block = b"".join(b"\0" + _text(name) + _text(value) for name, value in fields)
        self.send(frame(HEADERS, END_HEADERS, stream, block))
        return stream

    def data(self, stream: int, data: bytes) -> None:
        """Send a part of a call's message, in as many frames as it takes."""
        for at in range(0, len(data), FRAME_BYTES_MAX):
            self.send(frame(DATA, 0, stream, data[at : at + FRAME_BYTES_MAX]))

    def heard(self, kind: int) -> bytes:
        """The payload of the next frame of that kind; what comes before it is dropped."""
        while True:
            head = self._exactly(9)
            payload = self._exactly(int.from_bytes(head[:3]))
            if head[3] == kind:
                return payload

    def is_cut(self, within_s: float) -> bool:
        """Whether the server ends the connection in time; what it says until then is dropped."""
        self.socket.settimeout(within_s)
        try:
            while self.socket.recv(65_536):
                pass
        except TimeoutError:
            return False
        except OSError:
            return True
        return True

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            if not more:
                raise ConnectionResetError("the server ended the connection")
            data += more
        return data


def _text(text: str) -> bytes:
    assert len(text) < 127, "a longer text has a longer length"
    return bytes([len(text)]) + text.encode()
