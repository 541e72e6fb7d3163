"""Conditions like ``lag=0`` or ``gone``, over a picture of the thing that is waited for.

A picture has the fields of its kind; it is None if the thing does not exist. Some words stand for
conditions on fields.
"""

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from dss_core.errors import IllegalArgument
from dss_core.times import parse_span_ms, text_of_span

Picture = Mapping[str, int | str | None]

NUMBERS = {
    "group": ("lag", "retrying", "dead", "members", "standby", "streams", "moving"),
    "session": ("subscriptions",),
    "op": ("streams-waiting",),
    "daemon": ("sessions", "groups"),
}
"""Fields that are counted, by kind."""
SPANS = {"group": ("oldest",)}
TEXTS = {**dict.fromkeys(NUMBERS, ("state",)), "group": ("state", "health")}
WORDS = {
    "group": {
        # New members get nothing before the next rebalance.
        "streams-moved": "moving=0,state!=rebalancing",
        "paused": "state=paused",
        "active": "state=active",
        "healthy": "health=healthy",
    },
    "session": {"connected": "state=connected"},
    "op": {"done": "state=done", "ended": "ended"},
    "daemon": {"ready": "state=serving", "stopped": "gone"},
}
"""Short for one or more comparisons."""
GONE, EXISTS, ENDED = "gone", "exists", "ended"
MOVING = "moving"

_COMPARISON = re.compile(r"([a-z-]+)(>=|<=|!=|=|>|<)(.+)")
_OPERATORS: dict[str, Callable[[int, int], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition, as it was written."""

    text: str
    field: str
    """Or `GONE`, `EXISTS`, `ENDED`."""
    comparison: str = ""
    value: int | str = 0

    def holds(self, picture: Picture | None) -> bool:
        """Whether it holds now."""
        if self.field == GONE:
            return picture is None
        if picture is None:
            return False
        if self.field == EXISTS:
            return True
        if self.field == ENDED:
            return bool(picture[ENDED])
        is_now = picture[self.field]
        if isinstance(self.value, str):
            return (is_now == self.value) is (self.comparison == "=")
        # Where nothing is unacknowledged, there is no oldest record.
        return _OPERATORS[self.comparison](is_now if isinstance(is_now, int) else 0, self.value)

    def is_now(self, picture: Picture | None, kind: str) -> str:
        """The present value, as a person reads it."""
        if picture is None:
            return "it is not there"
        if self.field in (GONE, EXISTS):
            return "it is there"
        if self.field == ENDED:
            return f"its state is {picture['state']}"
        value = picture[self.field]
        if isinstance(value, int) and self.field in SPANS.get(kind, ()):
            return f"{self.field} is {text_of_span(value)}"
        return f"{self.field} is {'none' if value is None else value}"


def conditions_of(kind: str, texts: Sequence[str]) -> tuple[Condition, ...]:
    """All conditions that must hold; one text may have several, separated by commas.

    Raises:
        IllegalArgument: one does not fit things of this kind.
    """
    return tuple(
        _condition(kind, written, each)
        for text in texts
        for written in text.split(",")
        for each in WORDS[kind].get(written, written).split(",")
    )


def _condition(kind: str, written: str, text: str) -> Condition:
    if text in (GONE, EXISTS) or (text == ENDED and kind == "op"):
        return Condition(written, text)
    found = _COMPARISON.fullmatch(text)
    if found is None:
        raise _unknown(kind, written)
    field, comparison, value = found.groups()
    if field in TEXTS[kind] and comparison in ("=", "!="):
        return Condition(written, field, comparison, value)
    if field in SPANS.get(kind, ()) and comparison in ("<", "<="):
        # An age that only grows is no change that a watch reports.
        return Condition(written, field, comparison, parse_span_ms(value))
    if field in NUMBERS[kind] and value.isascii() and value.isdigit():
        return Condition(written, field, comparison, int(value))
    raise _unknown(kind, written)


def _unknown(kind: str, written: str) -> IllegalArgument:
    words = ", ".join((*WORDS[kind], EXISTS, GONE) if kind != "daemon" else WORDS[kind])
    counted = " or ".join(f"{field}=N" for field in NUMBERS[kind])
    spans = "".join(f", {field}<5m" for field in SPANS.get(kind, ()))
    rule = f"of a {kind} it is {counted} (also > >= < <= !=){spans}, state=WORD, or one of {words}"
    return IllegalArgument(argument=f"the condition {written!r}", rule=rule)
