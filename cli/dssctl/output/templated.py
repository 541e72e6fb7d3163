"""A line an item, as a template of its user says: ``{name} {lag:>8}``.

Values are those of the JSON document. Invariant: a template reaches fields of the item and nothing
else of the program, and a field that is not there is an error, never an empty place.
"""

import json
from collections.abc import Mapping, Sequence
from string import Formatter
from typing import Any, TextIO

from dss_core.errors import WrongUsage
from dss_core.sentences import as_sentence
from dssctl.output.escape import escaped
from dssctl.output.model import Item, Kind, Section, plain
from dssctl.settings import Settings


def writer(settings: Settings, kind: Kind, out: TextIO, *, grows: bool) -> "Templated":
    """Lines of the kind."""
    return Templated(settings.template, out)


class Templated:
    """Writes each item on its line."""

    def __init__(self, template: str, out: TextIO) -> None:
        self._template = template
        self._out = out
        self._fields = _Fields()

    def begin(self) -> None:
        """Nothing stands before the first line."""

    def add(self, item: Item) -> None:
        """Write one line.

        Raises:
            WrongUsage: the template names a field that the item does not have.
        """
        try:
            line = self._fields.vformat(self._template, (), item)
        except (ValueError, KeyError, IndexError, TypeError) as problem:
            reason = f"the template '{self._template}' cannot be filled in: {_said(problem)}"
            raise WrongUsage(reason=as_sentence(reason), command="dssctl explain") from problem
        self._out.write(f"{escaped(line)}\n")

    def end(self) -> None:
        """Nothing stands after the last line."""

    def one(self, item: Item, _sections: Sequence[Section]) -> None:
        """A single thing is one line."""
        self.add(item)


class _Fields(Formatter):
    """Fields by name, and those inside of them behind a dot; no attributes, no indices."""

    def get_field(
        self,
        field_name: str,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> tuple[Any, str]:
        """The value of a field, and its name."""
        value: Any = kwargs
        for part in field_name.split("."):
            if not isinstance(value, Mapping) or part not in value:
                known = ", ".join(value) if isinstance(value, Mapping) else "none"
                raise ValueError(f"there is no field '{part}'; there are {known}")
            value = value[part]
        return _printable(value), field_name


def _printable(value: Any) -> Any:  # noqa: ANN401 -- whatever an item holds
    simple = plain(value)
    if isinstance(simple, bool | dict | list):
        return json.dumps(simple, ensure_ascii=False)
    return "" if simple is None else simple


def _said(problem: Exception) -> str:
    return str(problem.args[0] if problem.args else problem).rstrip(".")
