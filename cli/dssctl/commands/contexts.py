"""``dssctl contexts``: named targets."""

import os
import sys
from collections.abc import Iterator
from typing import Annotated

import typer

from dss_core.errors import ContextExists, ContextNotFound, DssError, ExitCode
from dssctl.arguments import IfExists
from dssctl.config.addresses import settled
from dssctl.config.document import (
    COLOURS,
    CONTEXT_FIELDS,
    PREVIOUS,
    Configuration,
    Context,
    config_path,
    context_of,
    read_configuration,
    require_context_name,
)
from dssctl.config.resolving import CREDENTIALS, context_in_use, found_context
from dssctl.listing import list_known, listing
from dssctl.output import Column, Item, Kind, note, show_list, show_one
from dssctl.selection import ListRules, Named
from dssctl.settings import Colour as When
from dssctl.settings import Settings
from dssctl.tree import Configuring, noun, settings_of, showing

app = noun("contexts")

ContextName = Annotated[str, typer.Argument(metavar="CONTEXT", help="Its name.")]
Colour = Annotated[
    str | None,
    typer.Option(metavar="COLOUR", help="Colour of the prompt, such as red; '' for none."),
]
Protected = Annotated[
    bool | None,
    typer.Option("--protected/--no-protected", help="Changes ask for a reason and for a name."),
]
DefaultOutput = Annotated[
    str | None,
    typer.Option(metavar="FORMAT", help="The format where no -o is given; '' for none."),
]
SparkMaster = Annotated[
    str | None,
    typer.Option(metavar="MASTER", help="Master of Spark for bulk jobs; '' for none."),
]

_COLUMNS = (
    Column("name", "NAME"),
    Column("current", "CURRENT", styles={"yes": "green"}),
    Column("endpoint", "ENDPOINT"),
    Column("colour", "COLOUR"),
    Column("read_only", "READ-ONLY"),
    Column("protected", "PROTECTED"),
    Column("default_output", "OUTPUT"),
    Column("spark_master", "SPARK", wide=True),
)
CONTEXT_KIND = Kind("Context", _COLUMNS, lambda item: str(item["name"]))
VALIDATED_KIND = Kind(
    "ValidatedContext",
    (
        Column("name", "NAME"),
        Column("endpoint", "ENDPOINT"),
        Column("valid", "VALID", styles={"yes": "green", "no": "bold red"}),
        Column("version", "DAEMON"),
        Column("problem", "PROBLEM"),
    ),
    CONTEXT_KIND.identity,
)


RULES = ListRules(remembered="contexts", named=Named("[CONTEXT]"))


class _ListingContexts(listing(CONTEXT_KIND, RULES)):  # type: ignore[misc] # made for this kind
    """Lists the contexts even if the chosen one does not exist."""

    needs_context = False


@app.command("ls", cls=_ListingContexts)
def list_contexts(context: typer.Context) -> None:
    """List the contexts of the configuration file."""
    settings = settings_of(context)
    configuration = read_configuration(config_path())
    list_known(context, list(_items(settings, configuration)))
    if not configuration.contexts:
        note(settings, "add one: dssctl contexts add NAME --endpoint ADDRESS")


@app.command(cls=showing(CONTEXT_KIND, command=Configuring))
def show(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="[CONTEXT]", help="Its name; the one in use.")
    ] = None,
) -> None:
    """Show one context."""
    settings = settings_of(context)
    configuration = read_configuration(config_path())
    found = _named(settings, configuration, name)
    show_one(settings, CONTEXT_KIND, _item(found, current=_is_current(settings, found)))


@app.command(cls=Configuring)
def use(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="CONTEXT", help="Its name; - for the one before.")],
) -> None:
    """Use a context from now on; a flag or DSSCTL_CONTEXT takes precedence."""
    if name == "-":
        _use_previous(context)
        return
    found_context(read_configuration(config_path()), name)
    _use(context, name)


@app.command(cls=Configuring)
def previous(context: typer.Context) -> None:
    """Go back to the context that was in use before."""
    _use_previous(context)


@app.command(cls=showing(CONTEXT_KIND, command=Configuring))
def add(
    context: typer.Context,
    name: ContextName,
    colour: Colour = None,
    protected: Protected = None,
    default_output: DefaultOutput = None,
    spark_master: SparkMaster = None,
) -> None:
    """Add a context: its --endpoint, and whether it is --read-only."""
    configuration = read_configuration(config_path())
    if name in configuration.contexts:
        raise ContextExists(context=name, path=configuration.path)
    _write(context, name, _given(context, colour, protected, default_output, spark_master))
    note(settings_of(context), f"use it: dssctl contexts use {name}, or -c {name} for one command")


@app.command(cls=showing(CONTEXT_KIND, command=Configuring))
def edit(
    context: typer.Context,
    name: ContextName,
    colour: Colour = None,
    protected: Protected = None,
    default_output: DefaultOutput = None,
    spark_master: SparkMaster = None,
) -> None:
    """Change fields of a context, --endpoint and --read-only/--write too; the others stay."""
    found_context(read_configuration(config_path()), name)
    fields = _given(context, colour, protected, default_output, spark_master)
    if not fields:
        raise typer.BadParameter("name what to change; see --help.", ctx=context)
    _write(context, name, fields)


@app.command("rm", cls=Configuring)
def remove(context: typer.Context, name: ContextName, if_exists: IfExists = False) -> None:
    """Remove a context from the configuration file; no daemon is asked."""
    from dssctl.config.editing import Document, edit_configuration

    try:
        found_context(read_configuration(config_path()), name)
    except ContextNotFound:
        if not if_exists:
            raise
        note(settings_of(context), f"the context {name} is not there")
        return

    def change(document: Document) -> None:
        del document["contexts"][name]
        for key in ("context", PREVIOUS):
            if document.get(key) == name:
                del document[key]

    edit_configuration(change)
    note(settings_of(context), f"the context {name} is removed")


@app.command(cls=showing(VALIDATED_KIND, command=Configuring))
def validate(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="[CONTEXT]", help="Its name; all where none is given.")
    ] = None,
) -> None:
    """Ask the daemon of each context how it is; exit code 1 where one does not answer."""
    settings = settings_of(context)
    configuration = read_configuration(config_path())
    wanted = (
        list(configuration.contexts.values())
        if name is None
        else [found_context(configuration, name)]
    )
    items = [_validated(settings, each) for each in wanted]
    show_list(settings, VALIDATED_KIND, items)
    if not all(item["valid"] for item in items):
        raise typer.Exit(ExitCode.FAILED)


@app.command(cls=Configuring)
def prompt(context: typer.Context) -> None:
    """Print the context in use for a shell's prompt: nothing where none is."""
    settings = settings_of(context)
    configuration = read_configuration(config_path())
    used = context_in_use(settings, configuration)
    if used is None:
        return
    marks = ("!" if used.protected else "") + (" (read-only)" if used.read_only else "")
    badge = f"[{used.name}{marks}]"
    if used.colour and _prompt_coloured(settings):
        badge = f"\x1b[1;{_ANSI[used.colour]}m{badge}\x1b[0m"
    sys.stdout.write(badge + "\n")


_ANSI = {colour: 31 + index for index, colour in enumerate(COLOURS)}


def _prompt_coloured(settings: Settings) -> bool:
    """Whether a prompt is coloured: a shell composes it, so stdout is no terminal."""
    return settings.colour is not When.NEVER and not os.environ.get("NO_COLOR")


def _use_previous(context: typer.Context) -> None:
    before = read_configuration(config_path()).previous
    if not before:
        raise typer.BadParameter("no context was in use before.", ctx=context)
    found_context(read_configuration(config_path()), before)
    _use(context, before)


def _use(context: typer.Context, name: str) -> None:
    from dssctl.config.editing import Document, edit_configuration

    def change(document: Document) -> None:
        before = document.get("context")
        if before not in (None, name):
            document[PREVIOUS] = before
        document["context"] = name

    edit_configuration(change)
    note(settings_of(context), f"the context in use is {name}")


def _given(
    context: typer.Context,
    colour: str | None,
    protected: bool | None,
    default_output: str | None,
    spark_master: str | None,
) -> dict[str, str]:
    """The fields that options set, including options that every command has.

    Raises:
        IllegalArgument, SocketPathTooLong: nothing can listen at the endpoint.
    """
    flags = settings_of(context).flags
    endpoint = flags.get("endpoint")
    if endpoint:
        from dss_client import connect

        connect(endpoint=endpoint)  # which does not connect yet
    said = {
        "endpoint": None if endpoint is None else settled(endpoint),
        "read_only": flags.get("read_only"),
        "colour": colour,
        "protected": None if protected is None else ("yes" if protected else "no"),
        "default_output": default_output,
        "spark_master": spark_master,
        **{name: flags.get(name) for name in CREDENTIALS},
    }
    return {field: text for field, text in said.items() if text is not None}


def _write(context: typer.Context, name: str, fields: dict[str, str]) -> None:
    from dssctl.config.editing import Document, edit_configuration, table_of, take_out

    try:
        require_context_name(name)
        typed = context_of(name, fields)
    except (ValueError, DssError) as problem:
        raise typer.BadParameter(str(problem), ctx=context) from problem

    def change(document: Document) -> None:
        table = table_of(document, "contexts", name)
        for field in fields:
            if field not in table or getattr(typed, field) == "":
                take_out(table, field)
            if getattr(typed, field) != "":
                table[field] = getattr(typed, field)

    configuration = edit_configuration(change)
    written = configuration.contexts[name]
    settings = settings_of(context)
    show_one(settings, CONTEXT_KIND, _item(written, current=_is_current(settings, written)))


def _named(settings: Settings, configuration: Configuration, name: str | None) -> Context:
    if name is not None:
        return found_context(configuration, name)
    used = context_in_use(settings, configuration)
    if used is None:
        raise ContextNotFound(context="in use", path=configuration.path, near="")
    return used


def _is_current(settings: Settings, context: Context) -> bool:
    try:
        return context_in_use(settings, read_configuration(config_path())) == context
    except ContextNotFound:
        return False


def _items(settings: Settings, configuration: Configuration) -> Iterator[Item]:
    for each in configuration.contexts.values():
        yield _item(each, current=_is_current(settings, each))


def _item(context: Context, *, current: bool) -> Item:
    fields = {field: getattr(context, field) for field in CONTEXT_FIELDS}
    texts = {field: None if value == "" else value for field, value in fields.items()}
    return {"name": context.name, "current": current, **texts}


def _validated(settings: Settings, context: Context) -> Item:
    from dssctl.connection import ask

    settings.endpoint = context.endpoint or None
    for name in CREDENTIALS:  # Each context has its own, and shows them only to its daemon.
        setattr(settings, name, getattr(context, name) or None)
        settings.flags.pop(name, None)
    version = problem = None
    try:
        version = ask(settings, lambda client: client.daemon.status()).version
    except DssError as failure:
        problem = f"{failure.code}: {failure.message}"
    return {
        "name": context.name,
        "endpoint": context.endpoint or None,
        "valid": problem is None,
        "version": version,
        "problem": problem,
    }
