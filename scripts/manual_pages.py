"""Every page of the manual, made of the command trees, the registry of errors and the tables.

Invariant: a page says nothing of a command that its tree does not say, but for examples and what
`manual_facts` has, which tests hold to the programs.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import manual_facts as facts
from manual_roff import Page, bold, italic

from dss_core.errors import REGISTRY
from dssctl import VERSION
from dssctl.command_tree import CommandNode, Parameter
from dssctl.explanations import explanation_of

DATE = "2026-11-22"
"""Of this version; a page that is made again is the same."""

EXAMPLES = Path(__file__).resolve().parent / "manual_examples.toml"
GLOBAL = "Global options"
SHARED = {"How it is changed": "that change something", "What is listed": "that list"}
"""Sections that many commands have alike: which commands these are."""
ERRORS = ("dssctl-errors", 7)


def pages(dssctl: CommandNode, dssd: CommandNode) -> Iterator[Page]:
    """All of them."""
    examples = tomllib.loads(EXAMPLES.read_text())
    yield _program_page(dssctl, examples)
    for noun in _shown(dssctl.children):
        yield _noun_page(noun, examples, dssctl)
    yield _daemon_page(dssd)
    yield _configuration_page()
    yield _errors_page()


def _page(name: str, section: int, about: str) -> Page:
    return Page(name, section, _small(about), version=VERSION, date=DATE)


def _program_page(tree: CommandNode, examples: Mapping[str, list[dict[str, object]]]) -> Page:
    page = _page("dssctl", 1, tree.summary)
    page.heading("synopsis")
    page.usage([f"{bold('dssctl')} {italic('NOUN VERB')} [{italic('options')}]"])
    page.heading("description")
    page.paragraph(
        "`dssctl` looks at and steers a daemon of DSS. What it prints for programs goes to "
        "standard output, in the format that -o names; everything else goes to standard error."
    )
    page.paragraph(
        "A command that changes something first shows a plan and asks. --dry-run shows the plan "
        "only, -y does not ask. What was changed is an operation with a number, which "
        "`dssctl ops` shows and, where it says so, takes back."
    )
    page.heading("commands")
    for child in _shown(tree.children):
        page.item(f"\\fBdssctl\\-{child.words[0]}\\fR(1)", child.summary)
    page.heading("global options")
    page.paragraph("They may stand anywhere on the line; the last one counts.")
    _options(page, tree.section("Options"))
    _options(page, tree.fullest(GLOBAL))
    for title, which in SHARED.items():
        page.heading(f"options of commands {which}")
        _options(page, tree.fullest(title))
    _table(page, "exit status", facts.EXIT_STATUS)
    _table(page, "environment", facts.ENVIRONMENT)
    _table(page, "files", facts.FILES)
    _examples(page, examples["dssctl"])
    nouns = [(f"dssctl-{child.words[0]}", 1) for child in _shown(tree.children)]
    page.see_also([*nouns, ERRORS, ("dssd", 8)])
    return page


def _noun_page(
    noun: CommandNode, examples: Mapping[str, list[dict[str, object]]], tree: CommandNode
) -> Page:
    page = _page(f"dssctl-{noun.words[0]}", 1, noun.summary)
    page.heading("synopsis")
    page.usage(_synopsis(command) for command in _leaves(noun))
    page.heading("description")
    page.paragraph(noun.summary)
    for command in _leaves(noun):
        _command(page, command, tree)
    page.heading("exit status")
    page.paragraph("See dssctl(1).")
    _examples(page, examples[noun.words[0]])
    page.see_also([("dssctl", 1), ERRORS])
    return page


def _command(page: Page, command: CommandNode, tree: CommandNode) -> None:
    """A command with what it takes; alone on its page it needs no heading of its own."""
    if len(command.words) > 1:
        page.subheading(" ".join((command.program, *command.words)))
        page.paragraph(command.summary)
    if command.description:
        for paragraph in command.description.split("\n\n"):
            page.paragraph(paragraph)
    for argument in command.arguments:
        page.item(italic(argument.value or ""), argument.help)
    _options(page, [each for each in command.section("Options") if not _is_help(each)])
    for title, which in SHARED.items():
        fullest = tree.fullest(title)
        if fullest and command.takes_all_of(fullest):
            page.paragraph(f"It also takes the options of commands {which}: dssctl(1).")
        else:
            _options(page, command.section(title))


def _options(page: Page, options: Sequence[Parameter]) -> None:
    for option in options:
        if not option.hidden:
            page.item(_tag(option), option.help + _more(option))


def _is_help(option: Parameter) -> bool:
    """Whether every command has it, to tell of itself."""
    return any(flag.startswith("--help") for flag in option.flags)


def _tag(option: Parameter) -> str:
    value = "" if option.value is None else f" {italic(option.value)}"
    return ", ".join(f"{bold(flag)}{value}" for flag in (*option.flags, *option.off_flags))


def _more(option: Parameter) -> str:
    """What the sentence leaves open."""
    words = []
    if option.choices and not all(each in option.help for each in option.choices):
        words.append(f" One of {', '.join(option.choices)}.")
    if option.default is not None and str(option.default) not in option.help.split():
        words.append(f" {option.default} where absent.")
    if option.repeated and "repeat" not in option.help:
        words.append(" It may be repeated.")
    return "".join(words)


def _synopsis(command: CommandNode) -> str:
    words = [bold(" ".join((command.program, *command.words)))]
    for argument in command.arguments:
        name = italic(argument.value or "") + ("..." if argument.repeated else "")
        words.append(name if argument.required else f"[{name}]")
    words += [_tag(option) for option in command.options if option.required]
    return " ".join([*words, f"[{italic('options')}]"])


def _daemon_page(tree: CommandNode) -> Page:
    page = _page("dssd", 8, tree.summary)
    page.heading("synopsis")
    page.usage(_synopsis(command) for command in tree.commands())
    page.heading("description")
    page.paragraph(
        "`dssd` keeps records in a log and lends the streams of the log to groups of consumers. "
        "One daemon holds one data directory. `dssctl` steers it."
    )
    for command in tree.commands():
        _command(page, command, tree)
    _table(page, "exit status", facts.DAEMON_EXIT_STATUS)
    _table(page, "environment", facts.DAEMON_ENVIRONMENT)
    _table(page, "files", facts.DAEMON_FILES)
    _table(page, "signals", facts.SIGNALS)
    page.see_also([("dssd.toml", 5), ("dssctl", 1)])
    return page


def _configuration_page() -> Page:
    page = _page("dssd.toml", 5, "Configuration of the daemon of DSS.")
    page.heading("synopsis")
    page.usage([f"{bold('dssd serve --config')} {italic('FILE.toml')}"])
    page.heading("description")
    page.paragraph(
        "A file in TOML. The daemon reads the one that it is named, and none by itself. An option "
        "on the command line counts more than a key here. A key that is not known is refused."
    )
    page.heading("keys")
    for key, (form, what) in facts.KEYS.items():
        page.item(f"{bold(key)} = {italic(form)}", what)
    page.heading("examples")
    page.example("All keys:", facts.CONFIGURATION.splitlines())
    page.see_also([("dssd", 8)])
    return page


def _errors_page() -> Page:
    page = _page(*ERRORS, "What the error codes of DSS mean, and what to do.")
    page.heading("description")
    page.paragraph(
        "Every error has a code that keeps its meaning. `dssctl errors explain` CODE says the "
        "same. An error that is definite has changed nothing, for certain; one that is not may "
        "have."
    )
    page.heading("errors")
    for code in sorted(REGISTRY):
        leaf = REGISTRY[code]
        page.subheading(f"{code} {leaf.__name__}")
        page.paragraph(leaf.sentence)
        page.paragraph(explanation_of(code))
        if leaf.hint:
            page.paragraph(f"What is told: {leaf.hint}")
        certainty = "Definite." if leaf.definite else "Not definite."
        page.paragraph(f"Exit status {int(leaf.exit_code)}. {certainty}")
    page.see_also([("dssctl", 1), ("dssctl-errors", 1)])
    return page


def _table(page: Page, title: str, rows: Mapping[str, str] | Mapping[int, str]) -> None:
    page.heading(title)
    for name, meaning in rows.items():
        page.item(bold(str(name)), meaning)


def _examples(page: Page, examples: Sequence[Mapping[str, object]]) -> None:
    page.heading("examples")
    for example in examples:
        page.example(str(example["about"]), str(example["run"]).strip().splitlines())


def _leaves(noun: CommandNode) -> Iterator[CommandNode]:
    return (each for each in noun.commands() if not each.hidden)


def _shown(nodes: Sequence[CommandNode]) -> list[CommandNode]:
    return [each for each in nodes if not each.hidden]


def _small(about: str) -> str:
    """As the NAME section has it: no capital, no full stop."""
    return about[:1].lower() + about[1:].rstrip(".") if about[1:2].islower() else about.rstrip(".")
