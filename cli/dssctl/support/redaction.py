"""Taking out names and secrets.

Invariant: one name becomes the same word everywhere in a bundle, so that what belongs together can
still be seen; no name is left in any text that went through `Redaction.text`.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

SECRET = re.compile(r"key|token|secret|passw|credential|auth", re.IGNORECASE)
"""In the name of a variable or a setting: its value is never told."""
LEFT_OUT = "(left out)"
_URL = re.compile(r"(\b[a-z][a-z0-9+.-]{1,15}://)[^\s\"'\\]+")
"""Addresses hold passwords and tokens."""
_SAID = re.compile(
    r"(\b(?:bearer|basic|token|passw(?:or)?d|secret|api[-_]?key)\b[\"'\\]*[:= ]\s*[\"'\\]*)"
    r"(?!\()[^\s\"'\\]+",
    re.IGNORECASE,
)
"""What follows such a word in a command or a log."""

_INSIDE_A_NAME = "A-Za-z0-9._-"
_NEVER = frozenset({"+", "#", "", "local", "loopback", "dssctl", "dssd"})
"""Wildcards, and words that say nothing of anybody."""


class Redaction:
    """What is taken out of a bundle."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        """With the names to be hidden; a path or a filter hides each of its levels."""
        levels = {
            level
            for name in names
            for level in re.split(r"[/@:, ]", name)
            if level not in _NEVER and not level.isdecimal()
        }
        # Longest first, so that no name is replaced inside another.
        ordered = sorted(levels, key=lambda level: (-len(level), level))
        self._words = {level: f"name-{number}" for number, level in enumerate(ordered, 1)}
        choices = "|".join(map(re.escape, ordered))
        around = f"[{_INSIDE_A_NAME}]"
        self._names = re.compile(f"(?<!{around})(?:{choices})(?!{around})") if ordered else None

    def text(self, text: str) -> str:
        """A text without secrets, and without the names."""
        text = _SAID.sub(rf"\1{LEFT_OUT}", _URL.sub(rf"\1{LEFT_OUT}", text))
        if self._names is None:
            return text
        return self._names.sub(lambda found: self._words[found[0]], text)

    def value(self, value: object) -> object:
        """A JSON value whose texts have no names; the keys of objects stay, but secrets go."""
        match value:
            case str():
                return self.text(value)
            case Mapping():
                return {key: self._of(str(key), inner) for key, inner in value.items()}
            case Sequence() if not isinstance(value, bytes):
                return [self.value(each) for each in value]
            case _:
                return value

    def _of(self, key: str, value: object) -> object:
        if SECRET.search(key) and isinstance(value, str) and value:
            return LEFT_OUT
        return self.value(value)
