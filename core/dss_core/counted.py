"""Numbers in sentences: one record, two records, 1.5G.

Invariant: this module knows no noun; the caller gives singular and plural.
"""


def counted(number: int, one: str, many: str = "") -> str:
    """``1 record``, ``2,000 records``; ``many`` where more than an s is added."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def bytes_text(count: int) -> str:
    """A number of bytes, in units of 1,024."""
    amount = float(count)
    for unit in ("B", "K", "M", "G", "T"):
        if amount < 1024 or unit == "T":
            break
        amount /= 1024
    return f"{count}B" if unit == "B" else f"{amount:.1f}{unit}"
