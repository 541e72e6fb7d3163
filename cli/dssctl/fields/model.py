"""A field of an item: its type, and its meaning in one sentence.

Invariant: a field is described once, wherever it is shown, sorted by, explained or checked.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class Type(StrEnum):
    """The type of a field, as people read it."""

    TEXT = "text"
    NUMBER = "number"
    FRACTION = "number with a fraction"
    RATE = "records a second"
    BYTES = "bytes"
    SPAN = "milliseconds"
    SECONDS = "seconds"
    MOMENT = "moment"
    TRUTH = "truth"
    TEXTS = "list of texts"
    RANGES = "list of ranges"
    """Pairs of a first offset and the offset after the last."""
    FIELDS = "fields"
    """Names and values that depend on the item."""
    ITEMS = "list"
    """An item of another kind."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a kind."""

    name: str
    type: Type
    help: str
    kind: str = ""
    """The kind of a list's items."""
    optional: bool = False
    """It may be null."""
    absent: bool = False
    """Some answers leave it out."""
    fades: bool = False
    """It changes with time alone, so its change is no change of the item."""

    @property
    def type_text(self) -> str:
        """Its type in words."""
        text = f"list of {self.kind}" if self.kind else str(self.type)
        return f"{text}, or none" if self.optional else text


Fields = tuple[Field, ...]


class Describe(Protocol):
    """Makes a field of one type."""

    def __call__(
        self,
        name: str,
        meaning: str,
        *,
        optional: bool = False,
        absent: bool = False,
        fades: bool = False,
    ) -> Field:
        """Describe it."""


def _of(kind: Type, *, fading: bool = False) -> Describe:
    def describe(
        name: str,
        meaning: str,
        *,
        optional: bool = False,
        absent: bool = False,
        fades: bool = False,
    ) -> Field:
        return Field(name, kind, meaning, optional=optional, absent=absent, fades=fades or fading)

    return describe


text = _of(Type.TEXT)
number = _of(Type.NUMBER)
fraction = _of(Type.FRACTION)
rate = _of(Type.RATE, fading=True)
size = _of(Type.BYTES)
span = _of(Type.SPAN)
moment = _of(Type.MOMENT)
truth = _of(Type.TRUTH)
texts = _of(Type.TEXTS)
ranges = _of(Type.RANGES)
anything = _of(Type.FIELDS)


def items(name: str, kind: str, meaning: str, *, absent: bool = False) -> Field:
    """Items of another kind."""
    return Field(name, Type.ITEMS, meaning, kind, absent=absent)
