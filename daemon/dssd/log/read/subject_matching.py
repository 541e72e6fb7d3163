"""Which records of a frame a filter wants, by the frame's subject table.

Invariant: a verdict depends only on the filter and the table's bytes, which are its cache key.
"""

from dss_core.filters import TopicFilter
from dss_core.frame import subjects_of
from dssd.subject_verdicts import SubjectVerdicts

SUBJECT_VERDICTS_MAX = 4_096
"""How many verdicts on subject tables are kept."""


Verdict = frozenset[int] | None
"""Indexes of the wanted subjects; None stands for all of them."""


class SubjectMatching:
    """Verdicts on the subject tables that readers met, in a bounded cache."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: SubjectVerdicts[tuple[str, bytes], Verdict] = SubjectVerdicts(
            SUBJECT_VERDICTS_MAX
        )

    def on(self, table: bytes, count: int, matching: TopicFilter) -> Verdict:
        """Which subjects of a table the filter matches.

        Raises:
            FrameCorrupt: the table is broken.
        """
        key = (matching.text, table)
        if key in self._kept:
            return self._kept[key]
        subjects = subjects_of(table, count)
        wanted = frozenset(
            index for index, subject in enumerate(subjects) if matching.matches(subject)
        )
        verdict = None if len(wanted) == len(subjects) else wanted
        self._kept.keep(key, table, verdict)
        return verdict
