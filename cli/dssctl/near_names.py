"""Names that may have been meant where one is not there.

Invariant: an answer never replaces what was written; it is said, and nothing more.
"""

from collections.abc import Iterable

from dssctl.limits import NEAR_NAMES_MAX


def near_names(name: str, known: Iterable[str]) -> list[str]:
    """The few that are most like it, the likest first."""
    from difflib import get_close_matches  # where something is misspelt, only

    lowered = {each.lower(): each for each in known}
    found = get_close_matches(name.lower(), lowered, NEAR_NAMES_MAX, cutoff=0.6)
    # Who writes `op` more likely means `ops` than `topics`.
    found.sort(key=lambda each: not each.startswith(name.lower()))
    return [lowered[each] for each in found]
