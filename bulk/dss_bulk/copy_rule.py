"""How the records of one job are copied: which subject each gets.

Subjects go by three rules: a template, where there is one; else a leading level that is the source
topic's name becomes the target's; else the target's name is put before.

Invariant: text alone, so a driver on Spark loads no Arrow for it; columns go by it in
`dss_bulk.copies`.
"""

from dataclasses import dataclass

from dss_core.errors import IllegalArgument

PLACEHOLDERS = ("subject", "source", "target", "rest")
"""Of a template: the whole subject, both topics, and the subject without a leading source topic."""


@dataclass(frozen=True, slots=True)
class CopyRule:
    """How the records of one job are copied."""

    source: str
    """Name of the topic that is read."""
    target: str
    """Name of the topic that is written."""
    job: str
    """Name of the job, as its origin header says it."""
    hops_max: int
    template: str | None = None
    """Of subjects, with `PLACEHOLDERS` in braces."""

    def __post_init__(self) -> None:
        """Try the template.

        Raises:
            IllegalArgument: it names a placeholder that there is none of.
        """
        self.subject_of("x")

    def subject_of(self, subject: str) -> str:
        """What a copy is about.

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
