"""Subjects, topic filters and subscription filters: their rules, matching and overlap.

A subject is levels joined by ``/``. In a filter ``+`` stands for exactly one level and ``#``, at
the end only, for all that remain, including none: ``orders/#`` matches ``orders`` too. A subject
that starts with ``$`` is hidden from filters whose first level is a wildcard.

Invariant: a `TopicFilter` or `SubscriptionFilter` that exists has passed its rules. Matching and
overlap take time linear in their texts. This module knows nothing of topics or groups.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dss_core.errors import IllegalFilter, IllegalName, IllegalSubject, QueueWithoutGroup
from dss_core.limits import NAME_BYTES_MAX, SUBJECT_BYTES_MAX, SUBJECT_LEVELS_MAX

_NAME = re.compile(r"[A-Za-z0-9._-]+")
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_FORBIDDEN_IN_SUBJECTS = re.compile("[+#\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_SHARE_WORDS = frozenset({"$share", "$shared", "$shares"})
_QUEUE_WORD = "$queue"


def check_name(name: str) -> None:
    """Check the name of a topic, group or client.

    Raises:
        IllegalName: it is empty, too long, or has a character outside ``[A-Za-z0-9._-]``.
    """
    if not name:
        raise IllegalName(name="''", rule="it is empty")
    if not _NAME.fullmatch(name):
        raise IllegalName(name=repr(name), rule="it has a character outside [A-Za-z0-9._-]")
    if len(name) > NAME_BYTES_MAX:
        raise IllegalName(name=name, rule=f"it is longer than {NAME_BYTES_MAX} bytes")


def check_subject(subject: str) -> None:
    """Check the subject of a record.

    Raises:
        IllegalSubject: it is empty, too long or too deep, or has a wildcard, a control
            character or a lone surrogate.
    """
    rule = _broken_text_rule(subject)
    if rule is None and ("+" in subject or "#" in subject):
        rule = "it has a wildcard"
    if rule is not None:
        raise IllegalSubject(subject=repr(subject), rule=rule)


def check_subjects(subjects: Sequence[str]) -> None:
    """Check the subjects of many records.

    Raises:
        IllegalSubject: one breaks a rule.
    """
    # Below this length a subject cannot break a limit, so only the characters are left to check,
    # and those of all subjects at once.
    short = all(subjects) and max(map(len, subjects), default=0) < SUBJECT_LEVELS_MAX
    if short and not _FORBIDDEN_IN_SUBJECTS.search("".join(subjects)):
        return
    for subject in subjects:
        check_subject(subject)


def _broken_text_rule(text: str) -> str | None:
    """The rule for subjects and filters alike that the text breaks, if any."""
    if not text:
        return "it is empty"
    if _UNPRINTABLE.search(text):
        return "it has a control character or a lone surrogate"
    if len(text) > SUBJECT_BYTES_MAX or len(text.encode()) > SUBJECT_BYTES_MAX:
        return f"it is longer than {SUBJECT_BYTES_MAX} bytes"
    if text.count("/") >= SUBJECT_LEVELS_MAX:
        return f"it has more than {SUBJECT_LEVELS_MAX} levels"
    return None


@dataclass(frozen=True, slots=True)
class TopicFilter:
    """A set of subjects. Built by `parse`; equal where the texts are equal."""

    text: str
    levels: tuple[str, ...]
    """The levels before ``#``; ``+`` among them stands for any."""
    open_ended: bool
    """Whether ``#`` follows the levels."""

    @classmethod
    def parse(cls, text: str) -> "TopicFilter":
        """Read a filter without a group.

        Raises:
            IllegalFilter: it breaks the rules of subjects, a wildcard shares its level, ``#`` is
                not last, or the first level is the prefix of a shared subscription.
        """
        levels = text.split("/")
        rule = _broken_text_rule(text) or _broken_filter_rule(levels)
        if rule is not None:
            raise IllegalFilter(filter=repr(text), rule=rule)
        open_ended = levels[-1] == "#"
        return cls(text, tuple(levels[:-1] if open_ended else levels), open_ended)

    @property
    def hides_dollar(self) -> bool:
        """Whether subjects that start with ``$`` are hidden: the first level is a wildcard."""
        return not self.levels or self.levels[0] == "+"

    def matches(self, subject: str) -> bool:
        """Whether the subject, which must be a legal one, is in the set."""
        levels = self.levels
        if "+" not in levels:
            prefix = "/".join(levels)
            if not self.open_ended:
                return subject == prefix
            if not levels:
                return not subject.startswith("$")
            return subject == prefix or subject.startswith(prefix + "/")
        if levels[0] == "+" and subject.startswith("$"):
            return False
        given = subject.split("/")
        if len(given) != len(levels) and not (self.open_ended and len(given) > len(levels)):
            return False
        return all(want in ("+", have) for want, have in zip(levels, given, strict=False))

    def covers(self, other: "TopicFilter") -> bool:
        """Whether every subject that matches the other matches this one too."""
        mine, theirs = self.levels, other.levels
        if self.hides_dollar and theirs and theirs[0].startswith("$"):
            return False
        if not self.open_ended and (other.open_ended or len(theirs) != len(mine)):
            return False
        if len(theirs) < len(mine):
            return False
        return all(want in ("+", have) for want, have in zip(mine, theirs, strict=False))

    def overlaps(self, other: "TopicFilter") -> bool:
        """Whether some legal subject matches both."""
        subject = self.common_subject(other)
        return subject is not None

    def common_subject(self, other: "TopicFilter") -> str | None:
        """The shortest legal subject that matches both, or None where there is none."""
        levels: list[str] = []
        for index in range(max(len(self.levels), len(other.levels))):
            mine = self._level(index)
            theirs = other._level(index)
            if mine is None or theirs is None:
                return None
            if mine != theirs and "+" not in (mine, theirs):
                return None
            levels.append(theirs if mine == "+" else mine)
        if levels in ([], ["+"]):
            return "x"
        subject = "/".join("" if level == "+" else level for level in levels)
        if not subject and self.open_ended and other.open_ended:
            subject = "/"  # One empty level is no subject, two are.
        if subject.startswith("$") and (self.hides_dollar or other.hides_dollar):
            return None
        return subject if 0 < len(subject.encode()) <= SUBJECT_BYTES_MAX else None

    def _level(self, index: int) -> str | None:
        """The filter's requirement for a level; None: it allows no such level."""
        if index < len(self.levels):
            return self.levels[index]
        return "+" if self.open_ended else None

    def __str__(self) -> str:
        """The text, for messages."""
        return self.text


def _broken_filter_rule(levels: list[str]) -> str | None:
    if levels[0] in _SHARE_WORDS or levels[0] == _QUEUE_WORD:
        return f"{levels[0]} cannot start a filter here"
    if any(len(level) > 1 and ("+" in level or "#" in level) for level in levels):
        return "a wildcard stands alone in its level"
    if "#" in levels[:-1]:
        return "'#' stands at the end only"
    return None


@dataclass(frozen=True, slots=True)
class SubscriptionFilter:
    """The filter of a subscriber, private or through a group."""

    group: str | None
    """None for a private subscription."""
    queue: bool
    """Whether the group was asked for as a queue."""
    filter: TopicFilter

    @classmethod
    def parse(cls, text: str) -> "SubscriptionFilter":
        """Read ``F``, ``$share/G/F``, ``$shared/G/F``, ``$shares/G/F`` or ``$queue/G/F``.

        Raises:
            QueueWithoutGroup: ``$queue`` is not followed by a group and a filter.
            IllegalName: the group's name breaks its rule.
            IllegalFilter: the filter breaks a rule.
        """
        word, _, rest = text.partition("/")
        if word not in _SHARE_WORDS and word != _QUEUE_WORD:
            return cls(None, False, TopicFilter.parse(text))
        queue = word == _QUEUE_WORD
        group, _, pattern = rest.partition("/")
        if queue and (not group or not pattern or "+" in group or "#" in group):
            raise QueueWithoutGroup(filter=repr(text))
        if not pattern:
            raise IllegalFilter(filter=repr(text), rule=f"it is written {word}/GROUP/FILTER")
        check_name(group)
        return cls(group, queue, TopicFilter.parse(pattern))

    @property
    def text(self) -> str:
        """The canonical spelling: ``F``, ``$share/G/F`` or ``$queue/G/F``."""
        if self.group is None:
            return self.filter.text
        return f"{'$queue' if self.queue else '$share'}/{self.group}/{self.filter.text}"

    def __str__(self) -> str:
        """The text, for messages."""
        return self.text
