"""Similar names for one that does not exist.

Invariant: an answer never replaces what was typed; it is only suggested.
"""

from collections.abc import Iterable

from dssctl.limits import NEAR_NAMES_MAX


def near_names(name: str, known: Iterable[str]) -> list[str]:
    """The few most similar names, the most similar first."""
    from difflib import get_close_matches  # where something is misspelt, only

    lowered = {each.lower(): each for each in known}
    found = get_close_matches(name.lower(), lowered, NEAR_NAMES_MAX, cutoff=0.6)
    # `op` more likely means `ops` than `topics`.
    found.sort(key=lambda each: not each.startswith(name.lower()))
    return [lowered[each] for each in found]
