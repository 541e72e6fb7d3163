"""Subjects as JetStream writes them, with dots, and as the log has them, with slashes.

Invariant: a subject that JetStream allows and that both sides read alike goes over and back
unchanged; any other is refused. ``>`` asks for one level at least, as in JetStream, where ``#``
asks for none.
"""

import re

from dss_core.errors import JetStreamMisuse, NotOffered

_NAME_FORBIDS = re.compile(r"[\s.*>/\\\x00-\x1f\x7f]")
_LEVEL_FORBIDS = re.compile(r"[\s\x00-\x1f\x7f]")


def check_token(what: str, name: str) -> None:
    """Refuse a name of a stream, a consumer or a queue that could be no token of a subject.

    Raises:
        JetStreamMisuse: it has a character that separates tokens or stands for them, or is empty.
    """
    if not name or _NAME_FORBIDS.search(name):
        rule = f"the {what} {name!r} is empty or has a dot, a wildcard, a slash or a space"
        raise JetStreamMisuse(rule=rule)


def slashed(subject: str, *, wildcards: bool) -> str:
    """A subject as the log has it; with wildcards, a filter.

    Raises:
        JetStreamMisuse: JetStream does not allow it.
        NotOffered: it has a character that means something else in the log.
    """
    levels = subject.split(".")
    wild = [level for level in levels if level in ("*", ">")]
    if _LEVEL_FORBIDS.search(subject) or not all(levels) or ">" in levels[:-1]:
        raise JetStreamMisuse(rule=f"{subject!r} is no subject")
    if wild and not wildcards:
        raise JetStreamMisuse(rule=f"{subject!r} has a wildcard, and one subject is needed")
    if any(mark in subject for mark in "/+#"):
        raise NotOffered(
            what=f"the subject {subject!r}", why="/, + and # mean something in the log"
        )
    return "/".join({"*": "+", ">": "+/#"}.get(level, level) for level in levels)


def dotted(text: str) -> str:
    """A subject or a filter of the log, as JetStream writes it."""
    if "#" in text or "+" in text:
        text = text.replace("+/#", ">").replace("#", ">").replace("+", "*")
    return text.replace("/", ".")
