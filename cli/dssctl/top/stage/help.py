"""The page of help, generated from the tables, and the menu of actions."""

from collections.abc import Iterator, Mapping

from dssctl.output.escape import escaped
from dssctl.top.lists.details import DetailRow, numbered
from dssctl.top.lists.listing import Column, Listing, Scene
from dssctl.top.model.places import Ordering
from dssctl.top.stage.actions import ACTION_TABLE, Action, Spot, actions_at
from dssctl.top.stage.keys import KEYS, REPLAY_KEYS

_NOUNS = (
    "pulse groups stuck topics sessions leaders schedules jobs operations events; "
    "group NAME, dead NAME, job NAME"
)


def _help_lines() -> Iterator[DetailRow]:
    for key in KEYS:
        yield DetailRow(", ".join(dict.fromkeys((key.shown, *_short(key.keys)))), key.help)
    yield DetailRow("", "")
    yield DetailRow(":", f"{_NOUNS}; q ends")
    yield DetailRow("", "")
    yield DetailRow("changes", "each opens the daemon's plan, with Cancel chosen")
    for action in ACTION_TABLE:
        yield DetailRow(action.key, action.help)
    yield DetailRow("", "")
    for key in REPLAY_KEYS:
        yield DetailRow(key.shown, key.help)


def _short(keys: tuple[str, ...]) -> list[str]:
    """The key names that one types as they are."""
    return [key for key in keys if len(key) == 1 or key in {"up", "down", "backspace"}]


HELP: Listing[DetailRow] = Listing(
    title="Help",
    columns=(
        Column("key", "KEY", 18, lambda row: row.label, lambda row, _pen: row.label,
            look=lambda _row: "key", rises=True),
        Column("does", "DOES", 30, lambda row: row.text, lambda row, _pen: row.text, grows=True,
            rises=True),
    ),
    rows=lambda _scene: numbered(list(_help_lines())),
    order=Ordering("", descending=False),
)  # fmt: skip


class ActionRow(tuple[Spot, Action]):
    """An action, and the row that it is about."""

    __slots__ = ()


def _action_rows(scene: Scene) -> Mapping[str, ActionRow]:
    spot = scene.spot
    return {action.key: ActionRow((spot, action)) for action in actions_at(spot)}


ACTIONS: Listing[ActionRow] = Listing(
    title="Actions",
    columns=(
        Column("key", "KEY", 5, lambda row: row[1].key, lambda row, _pen: row[1].key,
            look=lambda _row: "key", rises=True),
        Column("title", "CHANGE", 30, lambda row: row[1].title(row[0]),
            lambda row, _pen: escaped(row[1].title(row[0])), grows=True, rises=True),
        Column("help", "TO", 30, lambda row: row[1].help, lambda row, _pen: row[1].help,
            grows=True, rises=True),
    ),
    rows=_action_rows,
    order=Ordering("", descending=False),
    empty="nothing can be changed here",
)  # fmt: skip
