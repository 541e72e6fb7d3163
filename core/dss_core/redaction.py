"""Taking secrets out of what is told: a little where operators look, more in what is given away.

Invariant: `masked` leaves out what lets somebody in, such as a password in an address. What went
through a `Redaction` has besides no address, nothing that a job was told of records, and no reason
that a person gave; and one name becomes the same word everywhere, so that what belongs together can
still be seen. This module does not know what is given away, or to whom.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

SECRET = re.compile(r"key|token|secret|passw|credential|auth", re.IGNORECASE)
"""In the name of a variable or a setting: its value is never told."""
LEFT_OUT = "(left out)"

_ADDRESS = re.compile(r"(\b[a-z][a-z0-9+.-]{1,15}://)([^\s\"'\\/?#]*)([^\s\"'\\]*)", re.IGNORECASE)
"""Its scheme, who is called there, and what of them."""
_SAID = re.compile(
    r"(\b(?:bearer|basic|token|passw(?:or)?d|secret|api[-_]?key)\b[\"'\\]*[:= ]\s*[\"'\\]*)"
    r"(?!\()[^\s\"'\\&]*[^\s\"'\\&:;,.]",
    re.IGNORECASE,
)
"""What follows such a word in a command, a query or a log, without what ends it in a sentence."""
_TOKEN = re.compile(r"(?<=[/=])(?=[\w~-]*[0-9])(?=[\w~-]*[a-z])[\w~-]{20,}", re.IGNORECASE)
"""In what follows the host: whoever has the address of such a hook may call it."""

_OWN_TOKEN = re.compile(r"\bdss_[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])")
"""What lets somebody in here, wherever it stands."""

_PARAMS = "params"
"""What a job is told besides: keys, headers, the text of a function."""
_PERSON, _REASON = "principal", "reason"
"""Beside the name of who did something, the reason is theirs; elsewhere it is the daemon's own."""
_FAILURE = "failure"
"""Of a job that somebody cancelled: their reason."""
_CANCELLED = re.compile(r"( cancelled it: ).+")

_INSIDE_A_NAME = "A-Za-z0-9._-"
_NEVER = frozenset({"+", "#", "", "local", "loopback", "dssctl", "dssd"})
"""Wildcards, and words that say nothing of anybody."""


def masked(text: str, people: Collection[str] = ()) -> str:
    """A text without what lets somebody in; addresses stay, so that operators know them again.

    So do these names of people, although one may look like a secret: ``token:billing``.
    """
    if not people:
        return _masked(text)
    named = re.compile(f"({'|'.join(map(re.escape, sorted(people)))})(?![{_INSIDE_A_NAME}])")
    pieces = named.split(text)  # each second one is a name
    pieces[::2] = map(_masked, pieces[::2])
    return "".join(pieces)


def _masked(text: str) -> str:
    text = _OWN_TOKEN.sub(LEFT_OUT, text)
    return _SAID.sub(rf"\1{LEFT_OUT}", _ADDRESS.sub(_masked_address, text))


def masked_json(text: str) -> str:
    """The same of JSON, which stays JSON."""
    is_clean = masked(text) == text
    return text if is_clean else json.dumps(_walked(json.loads(text)), sort_keys=True)


def _walked(value: object) -> object:
    match value:
        case str():
            return masked(value)
        case Mapping():
            return {key: _walked(inner) for key, inner in value.items()}
        case list():
            return [_walked(each) for each in value]
        case _:
            return value


def _masked_address(found: re.Match[str]) -> str:
    user, at, host = found[2].rpartition("@")
    return f"{found[1]}{LEFT_OUT if user else ''}{at}{host}{_TOKEN.sub(LEFT_OUT, found[3])}"


class Redaction:
    """What is taken out of something that is given away."""

    def __init__(self, names: Iterable[str] = (), reasons: Iterable[str] = ()) -> None:
        """With names to be hidden, a path or a filter by its levels, and what people said."""
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
        self._reasons = frozenset(reasons) - {""}
        said = "|".join(map(re.escape, sorted(self._reasons, key=len, reverse=True)))
        self._repeated = re.compile(f": (?:{said})(?=[.;]|$)") if said else None

    def text(self, text: str) -> str:
        """A text without secrets, and without the names."""
        if self._repeated is not None:
            text = self._repeated.sub(f": {LEFT_OUT}", text)
        text = _CANCELLED.sub(rf"\1{LEFT_OUT}", text)
        text = _OWN_TOKEN.sub(LEFT_OUT, _ADDRESS.sub(rf"\1{LEFT_OUT}", text))
        text = _SAID.sub(rf"\1{LEFT_OUT}", text)
        if self._names is None:
            return text
        return self._names.sub(lambda found: self._words[found[0]], text)

    def value(self, value: object) -> object:
        """A JSON value whose texts have no names; the keys of objects stay, but secrets go.

        A text that is JSON itself is looked into.
        """
        match value:
            case str():
                inner = _json_in(value)
                return self.text(value) if inner is None else json.dumps(self.value(inner))
            case Mapping():
                return {key: self._of(str(key), inner, value) for key, inner in value.items()}
            case Sequence() if not isinstance(value, bytes):
                return [self.value(each) for each in value]
            case _:
                return value

    def _of(self, key: str, value: object, beside: Mapping[object, object]) -> object:
        is_left_out = key == _PARAMS or (key == _REASON and _PERSON in beside)
        if isinstance(value, str):
            is_said = key == _FAILURE and value in self._reasons
            is_left_out = is_left_out or is_said or SECRET.search(key) is not None
        return LEFT_OUT if value and is_left_out else self.value(value)


def reasons_in(value: object) -> Iterator[str]:
    """What people said why they did something, wherever it stands in an answer."""
    match value:
        case Mapping():
            if _PERSON in value and isinstance(reason := value.get(_REASON), str):
                yield reason
            for inner in value.values():
                yield from reasons_in(inner)
        case list() | tuple():
            for inner in value:
                yield from reasons_in(inner)


def _json_in(text: str) -> object:
    """What an object or a list says that is written as a text; None where it is none."""
    if not text.startswith(("{", "[")):
        return None
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value
