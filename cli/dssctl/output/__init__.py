"""The one renderer of ``dssctl``: every command hands it a kind and its items.

Invariant: stdout gets data only, in the format that was asked for; what a person should know
besides goes to stderr. Which format is used changes nothing about which items are shown. The
renderer knows neither the client nor the commands.
"""

from dssctl.output.instants import Instant
from dssctl.output.model import Cell, Column, Item, Kind, Section, Value, shown
from dssctl.output.narration import note, note_condition
from dssctl.output.writer import Writer, growing, show_list, show_one, tell_one

__all__ = [
    "Cell",
    "Column",
    "Instant",
    "Item",
    "Kind",
    "Section",
    "Value",
    "Writer",
    "growing",
    "note",
    "note_condition",
    "show_list",
    "show_one",
    "shown",
    "tell_one",
]
