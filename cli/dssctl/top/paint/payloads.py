"""A payload as lines that are safe to print: JSON, text or bytes in hexadecimal.

Invariant: no control character passes, and the number of omitted bytes is shown.
"""

import json
import re

from dssctl.output.escape import escaped
from dssctl.top.paint.spans import wrapped

PEEK_BYTES_MAX = 64 << 10
"""How many bytes of one payload are shown: nobody reads more on a terminal, and layout takes
time."""


_HEX_BYTES = 16


def payload_lines(payload: bytes, width: int) -> tuple[str, list[str]]:
    """The kind of the payload, and its lines."""
    head = payload[:PEEK_BYTES_MAX]
    left = len(payload) - len(head)
    shape, lines = _shaped(head, whole=not left)
    safe = [piece for each in lines for piece in wrapped(escaped(each), width)]
    if left:
        safe.append(f"... {left} bytes more")
    return shape, safe


def _shaped(payload: bytes, *, whole: bool) -> tuple[str, list[str]]:
    if not payload:
        return "empty", []
    try:
        # The end may have been cut inside a character.
        text = payload.decode() if whole else payload.decode(errors="ignore")
    except UnicodeDecodeError:
        return "bytes", _hexadecimal(payload)
    if whole and text[:1] in {"{", "["} and _is_json(text):
        return "JSON", _indented(text)
    if "\0" in text:
        return "bytes", _hexadecimal(payload)
    return "text", text.split("\n")


_OPENING = frozenset("{[")
_CLOSING = frozenset("}]")


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)


def _indented(text: str) -> list[str]:
    """JSON in lines, with its tokens unchanged: 12.50 stays 12.50, and a repeated name stays."""
    lines, current, depth, before = [], "", 0, ""
    for token in _TOKEN.findall(text):
        closes = token in _CLOSING
        depth -= closes
        # An empty object or list stays on its line.
        if ((before in _OPENING or before == ",") and not (closes and before in _OPENING)) or (
            closes and before not in _OPENING
        ):
            lines.append(current)
            current = "  " * depth
        current += ": " if token == ":" else token
        depth += token in _OPENING
        before = token
    return [*lines, current]


def _hexadecimal(payload: bytes) -> list[str]:
    lines = []
    for at in range(0, len(payload), _HEX_BYTES):
        piece = payload[at : at + _HEX_BYTES]
        shown = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in piece)
        lines.append(f"{at:06x}  {piece.hex(' ').ljust(_HEX_BYTES * 3 - 1)}  {shown}")
    return lines
