"""Names that lists have shown, kept for the completion of the next words.

There is a file for each kind of name, in a folder for each target of command lines. It has one name
per line, perhaps with a tab and a few words about it. Invariants: only safe characters are stored
and answered, because a shell may read them as code and a terminal as commands; a cache that cannot
be read or written counts as empty. Imported where every millisecond counts: nothing but `os`.
"""

import os

NAMES_KEPT_MAX = 2_000
"""Names of a kind; nobody reads more."""

NAMES_KEPT_BYTES_MAX = 1 << 20
"""Bytes to read for a kind: this many of the longest names, with words about them."""


TYPE_CHECKING = False  # `typing` and `collections.abc` take as long as all the rest
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

LISTED_BY = {
    "topics": ("topics", "ls"),
    "streams": ("topics", "ls"),
    "groups": ("groups", "ls"),
    "borrowers": ("borrowers", "ls"),
    "sessions": ("sessions", "ls"),
    "ops": ("ops", "ls"),
    "contexts": ("contexts", "ls"),
    "schedules": ("schedules", "ls"),
    "tasks": ("tasks", "ls"),
    "jobs": ("jobs", "ls"),
}
"""Each kind of name, with the command that shows and so stores them."""

TARGET_FLAGS = ("--endpoint", "--context", "-c")
"""Options that tell which daemon is meant."""
_TARGET_VARIABLES = ("DSSCTL_ENDPOINT", "DSSCTL_CONTEXT", "DSSCTL_CONFIG")

_SAFE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._@/+-")
_SAFE_IN_WORDS = _SAFE | frozenset(" #,=")
_WORDS_CHARS = 60


def target_options(words: "Sequence[str]") -> list[str]:
    """The words of a command line that tell which daemon is meant."""
    found: list[str] = []
    for at, word in enumerate(words):
        flag, equals, _ = word.partition("=")
        if flag in TARGET_FLAGS:
            found += [word] if equals else words[at : at + 2]
    return found


def folder_for(words: "Sequence[str]", environment: "Mapping[str, str]") -> str:
    """The folder of names for the target of a command line with these words."""
    home = environment.get("XDG_CACHE_HOME", "")
    if not home.startswith("/"):
        home = os.path.join(os.path.expanduser("~"), ".cache")  # noqa: PTH111, PTH118 - see above
    stated = [*target_options(words), *(environment.get(each, "") for each in _TARGET_VARIABLES)]
    target = "".join(map(_in_a_path, "\0".join(stated)))
    return f"{home}/dssctl/names/{target or 'default'}"


def _in_a_path(character: str) -> str:
    if character.isalnum() and character.isascii():
        return character
    return "_" if character == "\0" else f"%{ord(character):x}"


def file_for(folder: str, kind: str) -> str:
    """The file of one kind."""
    return f"{folder}/{kind}"


def safe(name: str) -> bool:
    """Whether a name may be given to a shell."""
    return bool(name) and _SAFE.issuperset(name) and name[0] != "-"


def keep(folder: str, kind: str, names: "Iterable[tuple[str, str]]") -> None:
    """Replace the names of a kind: each with words about it, or with none."""
    lines = [
        f"{name}\t{_safe_words(about)}\n" if about else f"{name}\n"
        for name, about in names
        if safe(name)
    ]
    path = file_for(folder, kind)
    beside = f"{path}.{os.getpid()}"
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103 - see above
        with open(beside, "w") as file:  # noqa: PTH123 - see above
            file.writelines(lines[:NAMES_KEPT_MAX])
        os.replace(beside, path)  # noqa: PTH105 - see above
    except OSError:
        return


def kept(folder: str, kind: str) -> list[str]:
    """The lines of a kind; none if nothing readable is there."""
    try:
        descriptor = os.open(file_for(folder, kind), os.O_RDONLY)
    except OSError:
        return []
    try:
        content = os.read(descriptor, NAMES_KEPT_BYTES_MAX)
    except OSError:
        return []
    finally:
        os.close(descriptor)
    return content.decode("ascii", "replace").splitlines()


def _safe_words(about: str) -> str:
    return "".join(each if each in _SAFE_IN_WORDS else " " for each in about[:_WORDS_CHARS]).strip()
