"""The command tree: nouns found by name, and global options on either side of the verb.

A noun's module is imported when the noun is used; the help of the whole program is written from
the table below and imports none of them. Invariant: every command and every noun takes every
global option, so each may stand anywhere; the last one counts.
"""

from collections.abc import Collection
from copy import copy
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, cast

import typer
from typer.core import TyperGroup

from dssctl.config import configure
from dssctl.global_options import global_options, section_of
from dssctl.impact import Impact, require_may_change
from dssctl.limits import NEAR_NAMES_MAX
from dssctl.near_names import near_names
from dssctl.output.model import Kind
from dssctl.settings import Format, Settings
from dssctl.summaries import Summarized

if TYPE_CHECKING:
    from typer.models import CommandInfo

VERBS_NAMED_MAX = 16
"""Verbs of a noun that the error for an unknown verb lists: two lines for the longest noun."""


PROGRAM = "dssctl"

COMMANDS = {
    "topics": "Named logs: list, create, describe, edit, remove.",
    "groups": "Shared subscriptions: list, create, describe, pause, edit, remove.",
    "grants": "Which member reads which stream: list, transfer, revoke.",
    "shards": "Slices in which ordered groups share out streams: list, describe, set their count.",
    "offsets": "Progress of groups: list, rewind, skip, seek, export, import.",
    "borrowers": "Members of groups: evict.",
    "records": "Single records: peek at the newest, find, get one whole, skip, redeliver.",
    "dlq": "Dead letters of groups: list, count by error, peek, redrive, discard, export.",
    "rq": "Records that failed and wait: list, count by error, retry now, skip, give up.",
    "leaders": "Who leads which group, since when: list, describe.",
    "sessions": "Sessions, which the daemon keeps for clients: list, close.",
    "tokens": "Who may call from elsewhere, by a token: add, list, rotate, remove.",
    "principals": "Who may call from elsewhere, and what: list, add, edit, confirm, remove.",
    "backup": "Copies of all that a daemon has: create, list, remove.",
    "schedules": "Tasks that run by the clock: list, create, describe, pause, trigger, edit.",
    "tasks": "What the daemon can do by the clock, or at once: list, run.",
    "jobs": "Bulk jobs: list, describe, drive, wait, pause, resume, cancel, remove.",
    "ops": "What operators changed: list, show, undo, wait, cancel, apply a plan.",
    "produce": "Publish lines, or JSON lines, to a topic.",
    "consume": "Print records as they come, alone or as member of a group.",
    "audit": "Which calls changed something, or were refused.",
    "events": "What happened to records and groups.",
    "watch": "Print the present state, then each change.",
    "wait": "Wait until a group, a session, an operation or the daemon is in a given state.",
    "doctor": "What is wrong, from the client to the groups, and what helps.",
    "check": "One measurement against bounds, for Nagios and Prometheus.",
    "top": "The dashboard: all of a daemon as it changes, with keys.",
    "support": "A bundle for the person who helps: gather, analyze.",
    "bench": "How fast the daemon at hand is, seen from here.",
    "replays": "Records of a topic copied to another, as a bulk job: create.",
    "exports": "Records of a topic as Parquet files, as a bulk job: create.",
    "transforms": "Records of a topic copied through your function, as a bulk job: create.",
    "backfills": "Rows of files as records of a topic, as a bulk job: create.",
    "audits": "Whether a topic has its records, each once and in order: create, show.",
    "daemon": "How the daemon is.",
    "contexts": "Named targets: list, use, add, edit, remove, validate.",
    "config": "What is configured, and where: show, set, unset.",
    "errors": "What an error code means.",
    "explain": "What the fields of items mean.",
    "completion": "The script with which a shell completes all this.",
    "man": "The manual.",
    "version": "The version of this program.",
}
"""Every command of the first level, in the order of the help, each in the module of its name."""


COMMAND_ALIASES = {
    **{
        name.removesuffix("s"): name
        for name in COMMANDS
        if name.endswith("s") and name.removesuffix("s") not in COMMANDS
    },
    "operation": "ops",
    "operations": "ops",
}
"""Words that people try first: nouns in the singular."""

VERB_ALIASES = {
    "list": ("ls",),
    "delete": ("rm",),
    "remove": ("rm",),
    "show": ("describe", "get"),
    "describe": ("show",),
    "get": ("describe", "show"),
    "add": ("create",),
    "new": ("create",),
    "create": ("add",),
}
"""Other usual words for a verb, where a noun has one of these and not the word itself."""

VERBS = frozenset({"ls", "rm", "create", "edit", "pause", "resume", *VERB_ALIASES})
"""What people begin with who come from tools that put the verb first."""

JOB_NOUNS = frozenset({"replays", "exports", "transforms", "backfills", "audits"})
"""Their verbs make bulk jobs; `jobs` has those that list and steer them."""


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
        name=PROGRAM,
        help="Look at and steer a DSS daemon.",
        epilog="Exit codes: 0 ok, 1 failed, 2 usage, 3 unreachable, 4 timeout, 5 not found, "
        "6 conflict, 7 denied, 8 declined, 10 changes found by --detailed-exitcode, "
        "130 interrupted, 141 pipe closed. A unix socket "
        "that nobody listens at is tried for 2 s, or for DSSCTL_CONNECT_WAIT seconds.",
        no_args_is_help=True,
        rich_markup_mode=None,
        params=global_options(),
        context_settings=_CONTEXT,
    )


_CONTEXT: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


def _nothing_before_the_verb() -> None:
    """A noun does nothing by itself."""


class Command(Summarized):
    """A verb, with the global options after it."""

    impact: ClassVar[Impact] = Impact.READ
    kinds: ClassVar[tuple[Kind, ...]] = ()
    """Of what it prints."""
    needs_context: ClassVar[bool] = True
    """Whether it is an error that the context named is not there."""

    def __init__(self, name: str | None, **attributes: Any) -> None:  # noqa: ANN401 -- Typer's own
        attributes["params"] = [*(attributes.get("params") or []), *global_options()]
        attributes["context_settings"] = {**_CONTEXT, **(attributes.get("context_settings") or {})}
        super().__init__(name, **attributes)

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 -- Typer's private types
        """Apply the configuration, then run it."""
        settings = settings_of(ctx)
        command = ctx.command_path.partition(" ")[2]
        configure(settings, command, needs_context=self.needs_context)
        if settings.format is Format.HELP:
            from dssctl.explaining import show_fields

            show_fields(settings, self.kinds)
            return None
        changes = self.changes(ctx, settings)
        if self.needs_context:
            _tell_elsewhere(settings, changes=changes)
        if changes:
            require_may_change(settings, ctx.command_path)
        return self.carry_out(ctx)

    def carry_out(self, ctx: Any) -> Any:  # noqa: ANN401 -- Typer's private types
        """Do what it does, with all settings known."""
        return super().invoke(ctx)

    def carry_out_paged(self, ctx: Any) -> Any:  # noqa: ANN401 -- Typer's private types
        """The same, where what it prints has an end."""
        from dssctl.pager import paged

        with paged(settings_of(ctx)):
            return Command.carry_out(self, ctx)

    def changes(self, _ctx: Any, _settings: Settings) -> bool:  # noqa: ANN401 -- Typer's private types
        """Whether this invocation changes anything."""
        return self.impact is not Impact.READ

    def format_options(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 -- Typer's private types
        """Write the command's own options apart from the global ones."""
        _format_options(self, ctx, formatter)


def _tell_elsewhere(settings: Settings, *, changes: bool) -> None:
    """Say that an endpoint counts more than that of the context in use.

    Who types a flag to look knows it; a variable may have been forgotten.
    """
    sentence = "" if settings.context is None else settings.context.elsewhere
    if sentence and (changes or "endpoint" not in settings.flags):
        from dssctl.output import note

        note(settings, sentence)


def showing(*kinds: Kind, command: type[Command] = Command) -> type[Command]:
    """The class of a command that prints these kinds."""
    return type(command.__name__, (command,), {"kinds": kinds})


class Configuring(Command):
    """A verb about the configuration itself, which helps also where the context is not there."""

    needs_context = False


class Noun(TyperGroup):
    """A noun, with the global options between it and its verb."""

    def __init__(self, **attributes: Any) -> None:  # noqa: ANN401 -- Typer's own
        attributes["params"] = [*(attributes.get("params") or []), *global_options()]
        attributes["context_settings"] = {**_CONTEXT, **(attributes.get("context_settings") or {})}
        super().__init__(**attributes)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 -- Typer's private types
        """Find a verb, by another usual word for it too; where there is none, say which is near."""
        verb = verb_meant(args[0], self.commands)
        _require_known(verb, self.commands, ctx)
        args = [verb, *args[1:]]
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 -- Typer's private types
        """Write verbs, then options, the global ones apart."""
        self.format_commands(ctx, formatter)
        _format_options(self, ctx, formatter)


def verb_meant(word: str, known: Collection[str]) -> str:
    """The verb that a word names; aliases are in no help, and no beginning of a word counts."""
    meant = (verb for verb in VERB_ALIASES.get(word, ()) if verb in known)
    return word if word in known else next(meant, word)


def _require_known(word: str, known: Collection[str], ctx: Any) -> None:  # noqa: ANN401 -- Typer's private types
    """See that there is such a command, and say which is near where there is none."""
    if word in known or word.startswith("-"):
        return
    told = f"No such command '{word}'."
    near = " or ".join(f"'{each}'" for each in near_names(word, known))
    if near:
        told += f" Did you mean {near}?"
    elif len(known) <= VERBS_NAMED_MAX:
        told += f" There {'is only' if len(known) == 1 else 'are'} {', '.join(known)}."
    if ctx.info_name in JOB_NOUNS:
        told += f" Jobs are listed and steered by {PROGRAM} jobs."
    ctx.fail(told)


class Root(TyperGroup):
    """The program: loads a command when it is named."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401 -- Typer's private types
        """The first level, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401 -- Typer's private types
        """Import the command's module; None where there is no such command."""
        return _loaded(cmd_name, "") if cmd_name in COMMANDS else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 -- Typer's private types
        """Find a command, in the singular too; where there is none, say which one is near."""
        name, rest = COMMAND_ALIASES.get(args[0], args[0]), args[1:]
        if name in VERBS:
            ctx.fail(f"What is it about? A noun comes first: {PROGRAM} groups {name}.")
        if name not in COMMANDS and not name.startswith("-"):
            name, rest = self._of_ones_own(ctx, args)
        if name not in COMMANDS:
            return super().resolve_command(ctx, [name, *rest])
        return name, _loaded(name, rest[0] if rest else ""), rest

    def _say_whose_verb(self, ctx: Any, name: str) -> None:  # noqa: ANN401 -- Typer's private types
        """Fail with the nouns that have a verb of that name, if there are any."""
        nouns = (noun for noun in COMMANDS if name in getattr(_loaded(noun, ""), "commands", ()))
        near = " or ".join(f"'{noun} {name}'" for noun in islice(nouns, NEAR_NAMES_MAX))
        if near:
            ctx.fail(f"No such command '{name}'. Did you mean {near}?")

    def _of_ones_own(self, ctx: Any, args: list[str]) -> tuple[str, list[str]]:  # noqa: ANN401 -- Typer's private types
        """What a word of the user's own stands for, with what is written behind it."""
        from dssctl.config.document import config_path, read_configuration

        aliases = read_configuration(config_path()).aliases
        if args[0] not in aliases:
            self._say_whose_verb(ctx, args[0])
        _require_known(args[0], [*COMMANDS, *aliases], ctx)
        first, *rest = aliases[args[0]]
        name = COMMAND_ALIASES.get(first, first)
        if name not in COMMANDS:
            ctx.fail(f"The alias '{args[0]}' stands for '{first}', which is no command.")
        return name, [*rest, *args[1:]]

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 -- Typer's private types
        """Write the table, importing nothing."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def format_options(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 -- Typer's private types
        """Write commands, then the global options."""
        self.format_commands(ctx, formatter)
        _format_options(self, ctx, formatter)


def _loaded(name: str, word: str) -> Any:  # noqa: ANN401 -- Typer's private types
    """A command of the first level; of its verbs only the one that is named, where one is.

    To make them all takes as long as to ask the daemon.
    """
    application: typer.Typer = import_module(f"dssctl.commands.{name}").app
    verbs = {_verb_name(each): each for each in application.registered_commands}
    verb = verb_meant(word, verbs)
    if verb in verbs:
        application = copy(application)
        application.registered_commands = [verbs[verb]]
    command = typer.main.get_command(application)
    command.name = name
    return command


def _verb_name(verb: "CommandInfo") -> str:
    assert verb.callback is not None
    return verb.name or typer.main.get_command_name(verb.callback.__name__)


_SECTIONS = ("Arguments", "Options", "What is listed", "How it is changed", "Global options")


def _format_options(command: Any, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 -- Typer's private types
    """Arguments, own options, global options: a section each."""
    sections: dict[str, list[tuple[str, str]]] = {}
    for parameter in command.get_params(ctx):
        record = cast("tuple[str, str] | None", parameter.get_help_record(ctx))
        if record is not None:
            sections.setdefault(section_of(parameter), []).append(record)
    for title in sorted(sections, key=_SECTIONS.index):
        with formatter.section(title):
            formatter.write_dl(sections[title])
