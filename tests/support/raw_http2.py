"""A client that speaks HTTP/2 by hand, so that it may stop in the middle of anything.

Invariant: it sends no more than the server allows, and only what it is told to. While it sends or
listens it answers pings, so that it counts as alive.
"""

import socket
import struct
from collections import defaultdict
from pathlib import Path
from typing import Self

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RESET, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
ACK = 0x1
END_HEADERS = 0x4
FRAME_BYTES_MAX = 16_384
"""The window of a peer that has not announced another one."""

INITIAL_WINDOW = 65_535
_INITIAL_WINDOW_SETTING = 4
_HEAD = struct.Struct(">I")
_SETTING = struct.Struct(">HI")
_HEAD_BYTES = 9


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """One frame of HTTP/2."""
    head = _HEAD.pack(len(payload) << 8 | kind) + bytes([flags]) + _HEAD.pack(stream)
    return head + payload


def message_head(size_bytes: int) -> bytes:
    """The prefix that gRPC puts before a message of this size."""
    return b"\0" + _HEAD.pack(size_bytes)


class RawPeer:
    """One connection to a server on a unix socket. A context manager that closes it."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(path))
        self._streams = 0
        self._window = INITIAL_WINDOW
        self._stream_window = INITIAL_WINDOW
        """The window of a new stream."""
        self._stream_windows: defaultdict[int, int] = defaultdict(lambda: self._stream_window)

    def __enter__(self) -> Self:
        """Return it; nothing is sent yet."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection."""
        self.socket.close()

    def greet(self) -> None:
        """Begin as every client must."""
        self.send(PREFACE + frame(SETTINGS, 0, 0, b""))
        self.heard(SETTINGS)

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
        """Send a part of a call's message, as far as the server's window allows."""
        at = 0
        while at < len(data):
            room = min(self._window, self._stream_windows[stream], FRAME_BYTES_MAX)
            if room <= 0:
                self.take_frame()
                continue
            piece = data[at : at + room]
            self.send(frame(DATA, 0, stream, piece))
            self._window -= len(piece)
            self._stream_windows[stream] -= len(piece)
            at += len(piece)

    def heard(self, kind: int, stream: int | None = None) -> bytes:
        """The payload of the next frame of this kind, and of this stream if one is given."""
        while True:
            found, found_stream, payload = self.take_frame()
            if found == kind and stream in (None, found_stream):
                return payload

    def take_frame(self) -> tuple[int, int, bytes]:
        """The next frame: its kind, its stream and its payload. It is answered if it asks for
        that."""
        head = self._exactly(_HEAD_BYTES)
        payload = self._exactly(int.from_bytes(head[:3]))
        kind, flags, stream = head[3], head[4], int.from_bytes(head[5:])
        if kind == WINDOW_UPDATE:
            self._widen(stream, int.from_bytes(payload))
        elif kind == SETTINGS and not flags & ACK:
            self._obey(payload)
            self.send(frame(SETTINGS, ACK, 0, b""))
        elif kind == PING and not flags & ACK:
            self.send(frame(PING, ACK, 0, payload))
        return kind, stream, payload

    def is_cut(self, within_s: float) -> bool:
        """Whether the server ends the connection in time; frames until then are dropped."""
        self.socket.settimeout(within_s)
        try:
            while self.socket.recv(65_536):
                pass
        except TimeoutError:
            return False
        except OSError:
            return True
        return True

    def _widen(self, stream: int, by: int) -> None:
        if stream:
            self._stream_windows[stream] += by
        else:
            self._window += by

    def _obey(self, settings: bytes) -> None:
        for setting, value in _SETTING.iter_unpack(settings):
            if setting == _INITIAL_WINDOW_SETTING:
                change, self._stream_window = value - self._stream_window, value
                for stream in self._stream_windows:
                    self._stream_windows[stream] += change

    def _exactly(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            if not more:
                raise ConnectionResetError("the server ended the connection")
            data += more
        return bytes(data)


def _text(text: str) -> bytes:
    assert len(text) < 127, "a longer text has a longer length"
    return bytes([len(text)]) + text.encode()
