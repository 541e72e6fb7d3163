"""The command tree as plain values, from which help as JSON, manuals and completions are made.

It reads the tree that runs, so it cannot differ from what the program does. Invariant: values only,
in the order of the help; this module does not know its users. Typer has its own copy of Click,
whose types are private, so parameters are recognised by their attributes.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

from dssctl.global_options import section_of
from dssctl.tree import PROGRAM, root


@dataclass(frozen=True, slots=True)
class Parameter:
    """An argument or an option of a command."""

    flags: tuple[str, ...]
    """``-o``, ``--output``; empty for an argument."""
    off_flags: tuple[str, ...]
    """``--no-wait`` of ``--wait/--no-wait``."""
    value: str | None
    """The name of its value in the help, ``GROUP``; None for a flag."""
    type: str
    """``text``, ``integer``, ``number``, ``choice`` or ``flag``."""
    choices: tuple[str, ...]
    """All possible values, if they are few."""
    help: str
    section: str
    """Section of the help text."""
    required: bool
    repeated: bool
    """It may be given several times, or takes all that remain."""
    default: str | int | float | None
    """None if there is no default, or if the help explains what an absent value means."""
    hidden: bool

    @property
    def is_argument(self) -> bool:
        """Whether it is given by its position."""
        return not self.flags


@dataclass(frozen=True, slots=True)
class CommandNode:
    """The program, a noun, or a command."""

    program: str
    words: tuple[str, ...]
    """``groups``, ``ls``; empty for the program itself."""
    summary: str
    """The first paragraph of its help."""
    description: str
    """The rest of its help."""
    epilog: str
    parameters: tuple[Parameter, ...]
    children: tuple["CommandNode", ...]
    hidden: bool
    impact: str
    """``read``, ``write`` or ``destructive``; empty for a noun."""
    prints: tuple[str, ...]
    """The kinds of its items, as in JSON."""

    @property
    def path(self) -> str:
        """As it is typed: ``dssctl groups ls``."""
        return " ".join((self.program, *self.words))

    @property
    def arguments(self) -> tuple[Parameter, ...]:
        """Positional arguments, in order."""
        return tuple(each for each in self.parameters if each.is_argument)

    @property
    def options(self) -> tuple[Parameter, ...]:
        """Options, recognised by their flags."""
        return tuple(each for each in self.parameters if not each.is_argument)

    def section(self, title: str) -> tuple[Parameter, ...]:
        """The parameters of a section of the help."""
        return tuple(each for each in self.parameters if each.section == title)

    def fullest(self, title: str) -> tuple[Parameter, ...]:
        """The longest form of a section below this node: the parameters that many commands
        share."""
        return max((each.section(title) for each in self.commands()), key=len)

    def takes_all_of(self, parameters: tuple[Parameter, ...]) -> bool:
        """Whether it has everything of a section's longest form."""
        return {each.flags for each in parameters} <= {each.flags for each in self.parameters}

    def commands(self) -> Iterator["CommandNode"]:
        """This node if it has no verbs, else the commands below it, in the order of the help."""
        if not self.children:
            yield self
        for child in self.children:
            yield from child.commands()


def command_tree() -> CommandNode:
    """The whole of ``dssctl``. Every command's module is imported for it."""
    return tree_of(root(), PROGRAM)


def command_kinds() -> Iterator[Any]:
    """The kinds of all items that commands print, as their classes name them."""
    program = root()
    for noun in (program.get_command(None, name) for name in program.list_commands(None)):
        for command in getattr(noun, "commands", {"": noun}).values():
            yield from getattr(command, "kinds", ())


def tree_of(
    command: Any,  # noqa: ANN401 -- Typer's private types
    program: str,
    words: tuple[str, ...] = (),
    parent: Any = None,  # noqa: ANN401
) -> CommandNode:
    """A Typer command with everything below it."""
    context = command.context_class(command, parent=parent, **command.context_settings)
    summary, _, description = (command.help or "").partition("\n\n")
    names = command.list_commands(context) if hasattr(command, "list_commands") else ()
    return CommandNode(
        program=program,
        words=words,
        summary=_one_line(summary),
        description=description.strip(),
        epilog=command.epilog or "",
        parameters=tuple(_parameter(each) for each in command.get_params(context)),
        children=tuple(
            tree_of(command.get_command(context, name), program, (*words, name), context)
            for name in names
        ),
        hidden=bool(command.hidden),
        impact=str(getattr(command, "impact", "")),
        prints=tuple(dict.fromkeys(kind.name for kind in getattr(command, "kinds", ()))),
    )


def _parameter(parameter: Any) -> Parameter:  # noqa: ANN401 -- Typer's private types
    argument = parameter.param_type_name == "argument"
    flag = bool(getattr(parameter, "is_flag", False))
    return Parameter(
        # The flags of the help option come from a set, without an order.
        flags=() if argument else tuple(sorted(parameter.opts, key=_short_first)),
        off_flags=() if argument else tuple(parameter.secondary_opts),
        value=None if flag else _value_name(parameter),
        type="flag" if flag else _type_name(parameter),
        choices=tuple(map(str, getattr(parameter.type, "choices", ()))),
        help=_one_line(parameter.help or ""),
        section=section_of(parameter),
        required=bool(parameter.required),
        repeated=bool(getattr(parameter, "multiple", False)) or parameter.nargs == -1,
        default=None if flag else _default(parameter),
        hidden=bool(getattr(parameter, "hidden", False)),
    )


def _short_first(flag: str) -> bool:
    return flag.startswith("--")


def _value_name(parameter: Any) -> str:  # noqa: ANN401 -- Typer's private types
    """The name without the marks for absent or repeated values."""
    name = str(parameter.metavar or _type_name(parameter).upper()).removesuffix("...")
    return name[1:-1] if name.startswith("[") and name.endswith("]") else name


def _type_name(parameter: Any) -> str:  # noqa: ANN401 -- Typer's private types
    """The value's type in a word that does not depend on the parser; a range is a number."""
    name = str(parameter.type.name).partition(" ")[0]
    return _TYPES.get(name, name)


_TYPES = {"str": "text", "int": "integer", "float": "number"}


def _default(parameter: Any) -> str | int | float | None:  # noqa: ANN401 -- Typer's private types
    value = parameter.default
    if isinstance(value, Enum):
        value = value.value
    return value if isinstance(value, str | int | float) and value != "" else None


def _one_line(text: str) -> str:
    return " ".join(text.split())
