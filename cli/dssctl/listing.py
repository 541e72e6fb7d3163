"""The steps of every ``ls``: ask, choose, print, and repeat if it is watched.

A command names its kind and hands over a question. Invariant: filters, orders, columns and limits
mean the same for every list.
"""

import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import typer
from typer.core import TyperArgument

from dssctl.completing.listed_names import remember
from dssctl.connection import ask
from dssctl.global_options import KeyOption
from dssctl.limits import WATCH_INTERVAL_S
from dssctl.output import Item, Kind, note, show_list
from dssctl.selection import ListRules, Selection, Wanted
from dssctl.settings import Settings
from dssctl.tree import Command, settings_of

if TYPE_CHECKING:
    from dss_client import Client

Question = Callable[["Client", Wanted], Awaitable[Sequence[Item]]]


class Listing(Command):
    """A verb that lists, with the common options of these verbs."""

    rules: ClassVar[ListRules] = ListRules()

    def __init__(self, name: str | None, **attributes: Any) -> None:  # noqa: ANN401 -- Typer's own
        named = [_NamesArgument(self.rules.named.metavar)] if self.rules.named else []
        own = attributes.get("params") or []
        attributes["params"] = [*named, *own, *_options(self.rules)]
        super().__init__(name, **attributes)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 -- Typer's private types
        """Let --watch stand alone."""
        return super().parse_args(ctx, with_bare_watch(args))

    def carry_out(self, ctx: Any) -> Any:  # noqa: ANN401 -- Typer's private types
        """List once, or again and again."""
        if settings_of(ctx).listing.watch_s is None and sys.stdout.isatty():
            return self.carry_out_paged(ctx)
        return super().carry_out(ctx)


def listing(kind: Kind, rules: ListRules | None = None) -> type[Listing]:
    """The command class of a list of this kind."""
    return type("Listing", (Listing,), {"kinds": (kind,), "rules": rules or ListRules()})


def list_items(
    context: typer.Context, question: Question, kind: Kind | None = None, *, whole: bool = True
) -> int:
    """Print the answer to the question, as the options say; returns how many items are shown.

    ``whole`` means that the question asks for all items, so completion may store their names.

    Raises:
        KeyboardInterrupt: it was watched until then.
        DssError: the options are wrong, or the daemon refuses.
    """
    settings = settings_of(context)
    command = context.command
    assert isinstance(command, Listing)
    selection = Selection(settings, kind or command.kinds[0], command.rules)
    if settings.listing.watch_s is not None:
        from dssctl.list_watch import watch_list

        watch_list(settings, selection, question, settings.listing.watch_s)
        return 0
    found = ask(settings, lambda client: question(client, selection.wanted))
    return _shown(settings, selection, found, command.rules.remembered if whole else "")


def list_known(context: typer.Context, items: Sequence[Item], kind: Kind | None = None) -> int:
    """Print items for which no daemon is asked; returns how many are shown."""
    settings = settings_of(context)
    command = context.command
    assert isinstance(command, Listing)
    selection = Selection(settings, kind or command.kinds[0], command.rules)
    return _shown(settings, selection, items, command.rules.remembered)


def _shown(settings: Settings, selection: Selection, items: Sequence[Item], names: str) -> int:
    chosen = selection.of(items)
    show_list(settings, selection.kind, map(selection.for_format, chosen))
    if settings.listing.pattern and not chosen:
        note(settings, f"nothing is named {settings.listing.pattern}")
    if names and not selection.wanted.filter:
        remember(names, selection.kind, items)
    return len(chosen)


class _NamesArgument(TyperArgument):
    """The names to list."""

    def __init__(self, metavar: str) -> None:
        super().__init__(
            param_decls=["pattern"],
            callback=lambda ctx, argument, value: self._set(ctx, argument, value),
            required=False,
            expose_value=False,
            metavar=metavar,
            help="Only those with this name; * stands for anything: 'pay*'.",
        )

    def _set(self, ctx: Any, argument: Any, value: str | None) -> None:  # noqa: ANN401 -- Typer's private types
        if value is None:
            return
        if "," in value or any(map(str.isspace, value)):
            reason = f"'{value}' is no pattern of names: they have no commas and no blanks."
            raise typer.BadParameter(reason, ctx=ctx, param=argument)
        ctx.find_root().obj.listing.pattern = value


class _ListOption(KeyOption):
    section = "What is listed"


def _options(rules: ListRules) -> list[Any]:
    """New options each time: an option belongs to one command."""
    limit = f"So many at most; {rules.limit} where absent." if rules.limit else "So many at most."
    return [
        _ListOption(
            ["--filter"],
            "filter",
            metavar="CONDITIONS",
            help="lag>1000,state=stalled or name=b*; -o help names the fields.",
        ),
        _ListOption(
            ["--sort"],
            "sort",
            metavar="FIELD",
            help="Greatest numbers and ages first, texts from a to z; -FIELD reverses it.",
        ),
        _ListOption(
            ["--columns"],
            "columns",
            metavar="COLUMNS",
            help="name,lag for these alone; +oldest for one more.",
        ),
        _ListOption(["-n", "--limit"], "limit", metavar="N", help=limit),
        watch_option(),
    ]


def watch_option() -> KeyOption:
    """The option of lists and pages that can be watched."""
    return _ListOption(
        ["-w", "--watch"],
        "watch",
        metavar="[=SPAN]",
        help=f"Look again every {WATCH_INTERVAL_S:g} s, or as often as said, until Ctrl-C: "
        "a terminal is drawn anew, else each change is printed.",
    )


def with_bare_watch(args: list[str]) -> list[str]:
    """The arguments with a value after a bare --watch: the parser knows no optional values."""
    end = args.index("--") if "--" in args else len(args)
    bare, usual = {"-w", "--watch"}, f"--watch={WATCH_INTERVAL_S:g}s"
    return [*(usual if each in bare else each for each in args[:end]), *args[end:]]
