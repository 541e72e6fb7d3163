"""Making untrusted text safe to print.

A record's payload may hold escape sequences that repaint a terminal, characters that reverse the
reading order, or invisible ones: two names look alike then, and terminals disagree about how wide
characters are that are joined by one. Invariant: what leaves here holds none of them. `quoted`
gives different results for different texts.
"""

import re

_INVISIBLE = "\u00ad\u200b\u200d-\u200f\u2060-\u2064\ufeff"
_UNSAFE = re.compile(
    f"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff{_INVISIBLE}]"
)
_UNSAFE_OR_BACKSLASH = re.compile(_UNSAFE.pattern[:-1] + "\\\\]")
_UNSAFE_OR_QUOTE = re.compile(_UNSAFE.pattern[:-1] + "\\\\']")
_SHORT = {"'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\"}


def escaped(text: str) -> str:
    """The text with control characters as escapes. A backslash is doubled where any is there."""
    if text.isascii() and text.isprintable():
        return text
    if not _UNSAFE.search(text):
        return text
    return _UNSAFE_OR_BACKSLASH.sub(_escape, text)


def quoted(text: str) -> str:
    """The text, or as a shell takes it, ``$'a\\nb'``, where it could be mistaken for another.

    For a cell that also shows ``-`` for nothing, and ``base64:`` or ``hex:`` before bytes
    that are no text.
    """
    unusual = not text or text == "-" or text.startswith(("$'", "base64:", "hex:"))
    if not unusual and text == text.strip() and not _UNSAFE.search(text):
        return text
    return f"$'{_UNSAFE_OR_QUOTE.sub(_escape, text)}'"


def escaped_in_json(document: str) -> str:
    """JSON text with what its encoder leaves raw escaped; such characters occur in strings only."""
    if document.isascii():
        return document.replace("\x7f", "\\u007f")
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", document)


def escaped_in_json_lines(text: str) -> str:
    """Indented JSON, or YAML, safe to print: its own line ends stay."""
    return "\n".join(escaped_in_json(line) for line in text.split("\n"))


def _escape(match: re.Match[str]) -> str:
    char = match[0]
    return _SHORT.get(char) or (f"\\x{ord(char):02x}" if ord(char) < 128 else f"\\u{ord(char):04x}")
