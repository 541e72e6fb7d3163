"""The command tree: nouns found by name, and global options on either side of the verb.

A noun's module is imported when the noun is used; the help of the whole program is written from
the table below and imports none of them. Invariant: every command and every noun takes every
global option, so each may stand anywhere; the last one counts.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, cast

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from dss_core.times import parse_span_ms
from dssctl.limits import CALL_TIMEOUT_S, OPERATION_WAIT_S
from dssctl.settings import Colour, Format, Settings

COMMANDS = {
    "topics": "Named logs: list, create, describe, edit, remove.",
    "groups": "Shared subscriptions: list, create, describe, pause, edit, remove.",
    "grants": "Which member reads which stream: list, transfer, revoke.",
    "offsets": "How far groups are: rewind, skip, seek, export, import.",
    "borrowers": "Members of groups: evict.",
    "records": "Single records: skip.",
    "sessions": "What the daemon keeps of clients: list, close.",
    "ops": "What operators changed: list, show, undo, wait, cancel, apply a plan.",
    "produce": "Publish lines, or JSON lines, to a topic.",
    "consume": "Print records as they come, alone or as member of a group.",
    "audit": "Which calls changed something, or were refused.",
    "events": "What happened to records and groups.",
    "watch": "How things are, then each change.",
    "top": "The dashboard: all of a daemon as it changes, with keys.",
    "daemon": "How the daemon is.",
    "errors": "What an error code means.",
    "version": "The version of this program.",
}
"""Every command of the first level, in the order of the help, each in the module of its name."""


def settings_of(context: typer.Context) -> Settings:
    """The global options of this invocation."""
    settings = context.find_root().obj
    assert isinstance(settings, Settings)
    return settings


def noun(name: str) -> typer.Typer:
    """An application for one noun, to hang verbs on."""
    application = typer.Typer(
        name=name,
        help=COMMANDS[name],
        cls=Noun,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
    )
    # Without a callback, a noun with a single verb would collapse into it.
    application.callback()(_nothing_before_the_verb)
    return application


def verb_alone(name: str) -> typer.Typer:
    """An application for a command without a noun."""
    return typer.Typer(name=name, add_completion=False, rich_markup_mode=None)


def root() -> "Root":
    """The whole program."""
    return Root(
        name="dssctl",
        help="Look at and steer a DSS daemon.",
        epilog="Exit codes: 0 ok, 1 failed, 2 usage, 3 unreachable, 4 timeout, 5 not found, "
        "6 conflict, 7 denied, 8 declined, 10 a dry run found something to do and was to say so, "
        "130 interrupted, 141 pipe closed. A unix socket "
        "that nobody listens at is tried for 2 s, or for DSSCTL_CONNECT_WAIT seconds.",
        no_args_is_help=True,
        rich_markup_mode=None,
        params=_global_options(),
        context_settings=_CONTEXT,
    )


_CONTEXT: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


def _nothing_before_the_verb() -> None:
    """A noun does nothing by itself."""


class Command(TyperCommand):
    """A verb, with the global options after it."""

    def __init__(self, name: str | None, **attributes: Any) -> None:  # noqa: ANN401 -- Typer's own
        attributes["params"] = [*(attributes.get("params") or []), *_global_options()]
        attributes["context_settings"] = {**_CONTEXT, **(attributes.get("context_settings") or {})}
        super().__init__(name, **attributes)

    def format_options(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 -- Typer's private types
        """Write the command's own options apart from the global ones."""
        _format_options(self, ctx, formatter)


class Noun(TyperGroup):
    """A noun, with the global options between it and its verb."""

    def __init__(self, **attributes: Any) -> None:  # noqa: ANN401 -- Typer's own
        attributes["params"] = [*(attributes.get("params") or []), *_global_options()]
        attributes["context_settings"] = {**_CONTEXT, **(attributes.get("context_settings") or {})}
        super().__init__(**attributes)

    def format_options(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 -- Typer's private types
        """Write verbs, then options, the global ones apart."""
        self.format_commands(ctx, formatter)
        _format_options(self, ctx, formatter)


class Root(TyperGroup):
    """The program: loads a command when it is named."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401 -- Typer's private types
        """The first level, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401 -- Typer's private types
        """Import the command's module; None where there is no such command."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"dssctl.commands.{cmd_name}")
        command = typer.main.get_command(module.app)
        command.name = cmd_name
        return command

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 -- Typer's private types
        """Find a command; where there is none, say which one may be meant, topics for topic."""
        if args[0] not in COMMANDS:
            from difflib import get_close_matches

            close = get_close_matches(args[0], COMMANDS)
            close.sort(key=lambda name: not name.startswith(args[0]))
            near = " or ".join(f"'{name}'" for name in close)
            meant = f" Did you mean {near}?" if near else ""
            ctx.fail(f"No such command '{args[0]}'.{meant}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 -- Typer's private types
        """Write the table, importing nothing."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def format_options(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 -- Typer's private types
        """Write commands, then the global options."""
        self.format_commands(ctx, formatter)
        _format_options(self, ctx, formatter)


class SettingsOption(TyperOption):
    """Sets one field of the settings, wherever on the line it stands."""

    section = "Global options"
    """Of the help text."""

    def __init__(
        self,
        flags: list[str],
        put: Callable[[Settings, Any], None],
        **attributes: Any,  # noqa: ANN401 -- Typer's own
    ) -> None:
        super().__init__(
            param_decls=flags,
            callback=lambda ctx, _option, value: self._set(ctx, value),
            expose_value=False,
            default=None,
            **attributes,
        )
        self._put = put

    def _set(self, ctx: Any, value: Any) -> None:  # noqa: ANN401 -- Typer's private types
        if value is None:
            return
        try:
            self._put(ctx.find_root().obj, value)
        except ValueError as problem:
            raise typer.BadParameter(str(problem), ctx=ctx, param=self) from problem


def _global_options() -> list[Any]:
    """New ones each time: an option belongs to one command."""
    return [
        SettingsOption(["-o", "--output"], _put_output, metavar="FORMAT", help=_OUTPUT_HELP),
        SettingsOption(
            ["--endpoint"],
            _put_endpoint,
            metavar="ADDRESS",
            help="unix:PATH or HOST:PORT; else DSSCTL_ENDPOINT, else the default socket.",
        ),
        SettingsOption(
            ["--timeout"],
            _put_timeout,
            metavar="SECONDS",
            help=f"Of one call; {CALL_TIMEOUT_S:g} where absent. Where the end of an operation is "
            f"waited for: of that; {OPERATION_WAIT_S:g} where absent.",
        ),
        SettingsOption(
            ["--color"], _put_colour, metavar="WHEN", help="auto, always or never; see NO_COLOR."
        ),
        SettingsOption(
            ["--no-headers"], _put_no_headers, is_flag=True, help="Leave out the line of headers."
        ),
        SettingsOption(["--no-input"], _put_no_input, is_flag=True, help="Never ask anything."),
    ]


_SECTIONS = ("Arguments", "Options", "How it is changed", "Global options")
_OUTPUT_HELP = f"{', '.join(Format)}; table where absent."


def _put_output(settings: Settings, value: str) -> None:
    if value not in list(Format):
        raise ValueError(f"'{value}' is none of {', '.join(Format)}.")
    settings.format = Format(value)


def _put_endpoint(settings: Settings, value: str) -> None:
    settings.endpoint = value


def _put_timeout(settings: Settings, value: str) -> None:
    seconds = _seconds(value)
    if not 0 < seconds < float("inf"):
        raise ValueError("a timeout is a positive number of seconds.")
    settings.timeout_s = settings.wait_s = seconds


def _seconds(value: str) -> float:
    """A number of seconds, or a span."""
    try:
        return float(value.removesuffix("s"))
    except ValueError:
        return parse_span_ms(value) / 1_000


def _put_colour(settings: Settings, value: str) -> None:
    if value not in list(Colour):
        raise ValueError(f"'{value}' is none of {', '.join(Colour)}.")
    settings.colour = Colour(value)


def _put_no_headers(settings: Settings, _value: bool) -> None:
    settings.headers = False


def _put_no_input(settings: Settings, _value: bool) -> None:
    settings.may_ask = False


def _format_options(command: Any, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 -- Typer's private types
    """Arguments, own options, global options: a section each."""
    sections: dict[str, list[tuple[str, str]]] = {}
    for parameter in command.get_params(ctx):
        record = cast("tuple[str, str] | None", parameter.get_help_record(ctx))
        if record is not None:
            sections.setdefault(_section_of(parameter), []).append(record)
    for title in sorted(sections, key=_SECTIONS.index):
        with formatter.section(title):
            formatter.write_dl(sections[title])


def _section_of(parameter: Any) -> str:  # noqa: ANN401 -- Typer's private types
    if isinstance(parameter, SettingsOption):
        return parameter.section
    return "Arguments" if parameter.param_type_name == "argument" else "Options"
