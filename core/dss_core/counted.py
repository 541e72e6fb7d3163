"""Numbers of things in sentences: one record, two records.

Invariant: this module knows no word; whoever counts says how one and how many are called.
"""


def counted(number: int, one: str, many: str = "") -> str:
    """``1 record``, ``2,000 records``; ``many`` where more than an s is added."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"
