"""The completion scripts of `dssctl` for bash, zsh and fish, as text.

The three walk the words of a line over the same table, each in its shell's spelling; what the
table says stands in the functions that are written here, the walk in ``completion_*.txt`` beside.
Invariant: nothing that comes from outside is run by a shell: names are data, cut out of lines that
`dssctl __complete` prints.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

from completion_model import EVERYWHERE, SHARED, Flag, Place, Word, places, shared_flags

from dssctl.command_tree import CommandNode

HERE = Path(__file__).resolve().parent
FILES = {"bash": "dssctl", "zsh": "_dssctl", "fish": "dssctl.fish"}
"""As each shell looks for them."""
NAMES = {EVERYWHERE: "everywhere", SHARED[0]: "changing", SHARED[1]: "listing"}
"""What each shared section is called in the scripts."""

Shared = Mapping[str, Sequence[Flag]]


def scripts(tree: CommandNode) -> dict[str, str]:
    """Each script by the name of its file."""
    found = tuple(places(tree))
    shared = {NAMES[title]: flags for title, flags in shared_flags(tree).items()}
    texts = {
        "bash": _bash(found, shared),
        "zsh": _zsh(found, shared),
        "fish": _fish(found, shared),
    }
    return {FILES[shell]: _filled(shell, text) for shell, text in texts.items()}


def _filled(shell: str, table: Iterable[str]) -> str:
    walk = (HERE / f"completion_{shell}.txt").read_text()
    return walk.replace("@TABLE@\n", "".join(f"{line}\n" for line in table))


# bash: words only.


def _bash(found: Sequence[Place], shared: Shared) -> Iterator[str]:
    yield "_dssctl_at()"
    yield "{"
    yield "    case $1 in"
    for place in found:
        yield f"        '{place.path}')"
        if place.children:
            yield f"            children='{_texts(place.children)}'"
        yield f"            flags='{_texts(place.flags)}'"
        for title in place.shared:
            yield f'            flags+=" $_dssctl_{NAMES[title]}"'
        if place.arguments:
            yield f"            arguments=({' '.join(map(_quoted, place.arguments))})"
        if place.repeats:
            yield "            repeats=1"
        yield "            ;;"
    yield "    esac"
    yield "}"
    yield ""
    for name, flags in shared.items():
        yield f"_dssctl_{name}='{_texts(flags)}'"
    yield ""
    yield "_dssctl_value()"
    yield "{"
    yield "    source="
    yield "    case $1:$2 in"
    for pattern, source in _values(found, shared, path=_quoted, any_path="*"):
        yield f"        {pattern}) source={_quoted(source)} ;;"
    yield "    esac"
    yield "}"


def _texts(words: Iterable[Word | Flag]) -> str:
    return " ".join(each.text for each in words)


def _values(
    found: Sequence[Place],
    shared: Shared,
    *,
    path: Callable[[str], str],
    any_path: str,
) -> Iterator[tuple[str, str]]:
    """Patterns of a path and a flag that has a value, and its source."""
    for flag in chain(*shared.values()):
        if flag.source is not None:
            yield f"{any_path}:{flag.text}", flag.source
    for place in found:
        for flag in place.flags:
            if flag.source is not None:
                yield f"{path(place.path)}:{flag.text}", flag.source


# zsh: words with descriptions behind a colon.


def _zsh(found: Sequence[Place], shared: Shared) -> Iterator[str]:
    yield "_dssctl_at() {"
    yield "    case $1 in"
    for place in found:
        yield f"        '{place.path}')"
        if place.children:
            yield f"            children=({_described(place.children)})"
        yield f"            flags=({_described(place.flags)})"
        for title in place.shared:
            yield f"            flags+=({_described(shared[NAMES[title]])})"
        if place.arguments:
            yield f"            arguments=({' '.join(map(_quoted, place.arguments))})"
        if place.repeats:
            yield "            repeats=1"
        yield "            ;;"
    yield "    esac"
    yield f"    flags+=({_described(shared['everywhere'])})"
    yield "}"
    yield ""
    yield "_dssctl_value() {"
    yield "    source="
    yield "    case $1:$2 in"
    for pattern, source in _values(found, shared, path=_quoted, any_path="*"):
        yield f"        {pattern}) source={_quoted(source)} ;;"
    yield "    esac"
    yield "}"


def _described(words: Iterable[Word | Flag]) -> str:
    return " ".join(
        _quoted(f"{each.text}:{each.about.replace(':', chr(92) + ':')}") for each in words
    )


# fish: words with descriptions behind a tab, a line each.


def _fish(found: Sequence[Place], shared: Shared) -> Iterator[str]:
    yield "function __dssctl_children"
    yield "    switch $argv[1]"
    for place in found:
        if place.children:
            yield f"        case {_fish_quoted(place.path)}"
            yield from _fish_lines(place.children)
    yield "    end"
    yield "end"
    yield ""
    yield "function __dssctl_flags"
    yield "    switch $argv[1]"
    for place in found:
        yield f"        case {_fish_quoted(place.path)}"
        yield from _fish_lines(place.flags)
        for title in place.shared:
            yield from _fish_lines(shared[NAMES[title]])
    yield "    end"
    yield from (line[4:] for line in _fish_lines(shared["everywhere"]))
    yield "end"
    yield ""
    yield "function __dssctl_argument"
    yield "    switch $argv[1]"
    for place in found:
        if place.arguments:
            yield f"        case {_fish_quoted(place.path)}"
            yield f"            set -l sources {' '.join(map(_fish_quoted, place.arguments))}"
            if place.repeats:
                yield "            set -a sources $sources[-1] $sources[-1] $sources[-1]"
            yield "            echo $sources[$argv[2]]"
    yield "    end"
    yield "end"
    yield ""
    yield "function __dssctl_value"
    yield '    switch "$argv[1]:$argv[2]"'
    for pattern, source in _values(found, shared, path=str, any_path="*"):
        yield f"        case {_fish_quoted(pattern)}"
        yield f"            echo {_fish_quoted(source)}"
    yield "    end"
    yield "end"


def _fish_lines(words: Iterable[Word | Flag]) -> Iterator[str]:
    for each in words:
        both = f"{_fish_quoted(each.text)} {_fish_quoted(each.about)}"
        yield f"            printf '%s\\t%s\\n' {both}"


def _quoted(text: str) -> str:
    """A word of bash or zsh that means itself."""
    return text if re.fullmatch(r"[\w./:-]+", text) else "'" + text.replace("'", "'\\''") + "'"


def _fish_quoted(text: str) -> str:
    """The same of fish."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
