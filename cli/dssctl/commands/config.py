"""``dssctl config``: what is configured, and where."""

import os
from collections.abc import Callable, Iterator
from shlex import join
from typing import TYPE_CHECKING, Annotated

import typer

from dss_core.errors import IllegalConfig, WrongUsage
from dss_core.sentences import as_sentence
from dssctl.aliases import require_begins_with_command, require_free
from dssctl.config import KEYS, Configuration, Context, resolved
from dssctl.config.addresses import settled
from dssctl.config.document import config_path, read_configuration
from dssctl.config.keys import did_you_mean, spelt, truth
from dssctl.config.resolving import context_in_use
from dssctl.output import Column, Item, Kind, note, show_list
from dssctl.settings import Settings
from dssctl.tree import PROGRAM, Configuring, noun, settings_of, showing

if TYPE_CHECKING:
    from dssctl.config.editing import Document

app = noun("config")

KeyName = Annotated[
    str,
    typer.Argument(
        metavar="KEY",
        help="time, contexts.NAME.colour, 'defaults.groups ls.sort' or aliases.NAME for four.",
    ),
]

VALUE_KIND = Kind(
    "ConfiguredValue",
    (
        Column("key", "KEY"),
        Column("value", "VALUE"),
        Column("variable", "VARIABLE", wide=True),
        Column("help", "WHAT", wide=True),
    ),
    lambda item: str(item["key"]),
)
ORIGIN_KIND = Kind(
    VALUE_KIND.name,
    (Column("key", "KEY"), Column("value", "VALUE"), Column("origin", "ORIGIN")),
    VALUE_KIND.identity,
)


@app.command(cls=showing(ORIGIN_KIND, command=Configuring))
def show(
    context: typer.Context,
    origin: Annotated[
        bool, typer.Option("--origin", help="Show where each value comes from, too.")
    ] = False,
    command: Annotated[
        str,
        typer.Option("--for", metavar="COMMAND", help="As it is for one: 'groups ls'."),
    ] = "",
) -> None:
    """Show each key of the configuration with the value that counts."""
    settings = settings_of(context)
    configuration = read_configuration(config_path())
    items = _items(settings, configuration, context_in_use(settings, configuration), command)
    show_list(settings, ORIGIN_KIND if origin else VALUE_KIND, items)


@app.command(cls=Configuring)
def path(context: typer.Context) -> None:
    """Print where the configuration file is, whether it is there or not."""
    where = config_path()
    typer.echo(os.fspath(where))
    if not where.exists():
        note(settings_of(context), "it is not there yet; dssctl config set writes it")


@app.command("set", cls=Configuring)
def set_value(
    context: typer.Context,
    key: KeyName,
    value: Annotated[str, typer.Argument(metavar="VALUE", help="As its flag has it.")],
) -> None:
    """Set a key in the configuration file; comments in it stay."""
    from dssctl.config.editing import table_of, take_out

    *tables, name = _parts(context, key)
    if tables[:1] == ["defaults"]:
        _require_command(context, tables[1])

    if tables == ["aliases"]:
        require_free(name)
        require_begins_with_command(value)
    typed = value if tables == ["aliases"] else _typed(name, value)

    def change(document: "Document") -> None:
        table = table_of(document, *tables)
        if tables != ["aliases"] and name not in table:
            take_out(table, name)
        table[name] = typed

    _edit(change)
    said = typed if name == "endpoint" else value
    note(settings_of(context), f"{key} is {said} in {config_path()}")


@app.command(cls=Configuring)
def unset(context: typer.Context, key: KeyName) -> None:
    """Remove a key from the configuration file, so that its default counts again."""
    from dssctl.config.editing import table_of, take_out

    *tables, name = _parts(context, key)
    gone: list[str] = []

    def change(document: "Document") -> None:
        table = table_of(document, *tables)
        if tables == ["aliases"]:
            was_set = table.pop(name, None) is not None
        else:
            was_set = take_out(table, name)
        gone.extend([name] if was_set else [])

    _edit(change)
    said = "is not set any more in" if gone else "was not set in"
    note(settings_of(context), f"{key} {said} {config_path()}")


def _edit(change: "Callable[[Document], None]") -> None:
    """If the file refuses an edit, that is a mistake of the command line."""
    from dssctl.config.editing import edit_configuration

    read_configuration(config_path())
    try:
        edit_configuration(change)
    except IllegalConfig as refused:
        said = str(refused.fields["reason"])
        raise WrongUsage(reason=as_sentence(said), command="dssctl config") from refused


def _require_command(context: typer.Context, name: str) -> None:
    """A default for a command that does not exist would have no effect, and nobody would notice."""
    from dssctl.command_tree import command_tree  # it imports every command

    known = [" ".join(each.words) for each in command_tree().commands()]
    if name not in known:
        near = did_you_mean(name, known)
        raise typer.BadParameter(f"there is no command '{name}'.{near}", ctx=context)


def _parts(context: typer.Context, key: str) -> list[str]:
    """The tables that lead to a key, and its name in the last of them."""
    first, dot, rest = key.partition(".")
    if first == "aliases":
        if not rest:
            raise typer.BadParameter(f"'{key}' is not aliases.NAME.", ctx=context)
        return [first, rest]
    if first not in {"contexts", "defaults"}:
        return [spelt(key)]
    name, last_dot, field = rest.rpartition(".")
    if not dot or not last_dot or not name or not field:
        raise typer.BadParameter(f"'{key}' is not {first}.NAME.KEY.", ctx=context)
    return [first, name, spelt(field)]


def _typed(name: str, value: str) -> str | bool | int:
    """The value in the TOML type that fits best."""
    if name == "endpoint":
        return settled(value)
    if name in {"read_only", "protected", "headers", "input", "quiet"}:
        try:
            return truth(value)
        except ValueError:
            return value  # Refused with the rest of the document
    return int(value) if value.isascii() and value.isdecimal() and len(value) < 18 else value


def _items(
    settings: Settings, configuration: Configuration, context: Context | None, command: str
) -> Iterator[Item]:
    given = {each.key: each for each in resolved(settings, configuration, context, command)}
    for key in KEYS.values():
        found = given.get(key.name)
        yield {
            "key": key.name,
            "value": found.text if found else key.default or None,
            "origin": found.origin if found else "default",
            "variable": key.variable,
            "help": key.help,
        }
    for name, words in configuration.aliases.items():
        yield {
            "key": f"aliases.{name}",
            "value": join(words),
            "origin": str(configuration.path),
            "variable": None,
            "help": f"What {PROGRAM} {name} stands for.",
        }
