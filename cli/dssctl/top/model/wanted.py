"""Filters of rows: words, and conditions on columns.

::

    pay eu          both words occur in the row, in whatever case
    !cdc            the word does not occur
    lag>1000        a number is compared; k, M and G, and spans of time like 5m, are understood
    state=stalled   a text is the same; state!=active: it is not

Invariant: every text is a filter; a text that is no condition on an existing column is a word.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import eq, ge, gt, le, lt, ne
from typing import Any, TypeAlias

from dss_core.errors import IllegalSpan
from dss_core.times import parse_span_ms

Value: TypeAlias = "str | float | int | None"
Values: TypeAlias = "Mapping[str, Callable[[Any], Value]]"
"""For a list: the value of each of its columns."""

_CONDITION = re.compile(r"([a-z-]+)(>=|<=|!=|>|<|=)(.+)")
_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]+)?)([kMG]?)")
_FACTORS = {"": 1, "k": 1_000, "M": 1_000_000, "G": 1_000_000_000}
_COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {
    ">=": ge,
    "<=": le,
    "!=": ne,
    ">": gt,
    "<": lt,
    "=": eq,
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """A filter, as it was written."""

    text: str = ""

    def __bool__(self) -> bool:
        """Whether it filters anything."""
        return bool(self.text.strip())

    def test(self, values: Values) -> "Callable[[Any], bool]":
        """Whether a row of a list with these columns is wanted."""
        tests = [_test(part, values) for part in self.text.split()]
        return lambda row: all(test(row) for test in tests)


EVERYTHING = Wanted()


def _test(part: str, values: Values) -> Callable[[Any], bool]:
    found = _CONDITION.fullmatch(part)
    if found is not None and found[1] in values:
        return _condition(values[found[1]], found[2], found[3])
    word = part.removeprefix("!").casefold()
    wanted = not part.startswith("!")
    if not word:
        return lambda _row: True
    return lambda row: _says(values, row, word) is wanted


def _says(values: Values, row: Any, word: str) -> bool:  # noqa: ANN401 -- rows of any list
    told = (value(row) for value in values.values())
    return any(word in text.casefold() for text in told if isinstance(text, str))


def _condition(value: Callable[[Any], Value], sign: str, written: str) -> Callable[[Any], bool]:
    compared, number = _COMPARED[sign], _number(written)

    def holds(row: Any) -> bool:  # noqa: ANN401 -- rows of any list
        found = value(row)
        if isinstance(found, str):
            return compared(found.casefold(), written.casefold())
        if found is None or number is None:
            return sign == "!="
        return compared(found, number)

    return holds


def _number(text: str) -> float | None:
    """The number that the text writes, a span as milliseconds; None if it is neither."""
    found = _NUMBER.fullmatch(text)
    if found is not None:
        return float(found[1]) * _FACTORS[found[2]]
    try:
        return float(parse_span_ms(text))
    except IllegalSpan:
        return None
