"""The rule by which one job copies records: the subject that each gets.

There are three rules for subjects: a template, if there is one; else, a leading level with the
source topic's name becomes the target's; else, the target's name is put in front.

Invariant: text only, so a driver on Spark loads no Arrow for it; `dss_bulk.copies` applies it to
columns.
"""

from dataclasses import dataclass

from dss_core.errors import IllegalArgument

PLACEHOLDERS = ("subject", "source", "target", "rest")
"""The parts of a template: the whole subject, both topics, and the subject without a leading source
topic."""


@dataclass(frozen=True, slots=True)
class CopyRule:
    """The rule for copies of one job."""

    source: str
    """The source topic."""
    target: str
    """The target topic."""
    job: str
    """The job's name in origin headers."""
    hops_max: int
    template: str | None = None
    """A template of subjects, with `PLACEHOLDERS` in braces."""

    def __post_init__(self) -> None:
        """Check the template.

        Raises:
            IllegalArgument: it has an unknown placeholder.
        """
        self.subject_of("x")

    def subject_of(self, subject: str) -> str:
        """The subject of a copy.

        Raises:
            IllegalArgument: the template is broken.
        """
        first, _, rest = subject.partition("/")
        led = first == self.source
        if self.template is None:
            return "/".join(filter(None, (self.target, rest if led else subject)))
        fields = {
            "subject": subject,
            "source": self.source,
            "target": self.target,
            "rest": rest if led else subject,
        }
        try:
            return self.template.format_map(fields)
        except (KeyError, ValueError, IndexError, AttributeError) as broken:
            names = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
            raise IllegalArgument(
                argument=f"subject template {self.template!r}", rule=f"it may name {names}"
            ) from broken
