"""Numbers for people: short, and marked where they are bounds."""

from dss_core.times import text_of_ms, text_of_span

_UNITS = ("", "k", "M", "G", "T", "P", "E")


def count(number: float) -> str:
    """A number in at most five characters, ``61.2k``."""
    if number < 0:
        return f"-{count(-number)}"
    if number < 10_000 and number == int(number):
        return str(int(number))
    unit = 0
    while number >= 999.5 and unit < len(_UNITS) - 1:
        number /= 1_000
        unit += 1
    digits = f"{number:.0f}" if number >= 99.95 else f"{number:.1f}".removesuffix(".0")
    return digits + _UNITS[unit]


def bounded(number: int, *, exact: bool) -> str:
    """A count, marked where it is an upper bound."""
    return count(number) if exact or not number else f"<={count(number)}"


def change(number: int) -> str:
    """The amount of a rise or fall, with its sign."""
    return "0" if not number else f"+{count(number)}" if number > 0 else count(number)


def rate(number: float) -> str:
    """Records a second."""
    if not number:
        return "0"
    if number < 0.05:
        return "<0.1"
    return f"{number:.1f}" if number < 9.95 else count(round(number))


def size(number: int) -> str:
    """Bytes, in units of 1,024."""
    amount = float(number)
    for unit in ("B", "K", "M", "G", "T"):
        if amount < 1_024 or unit == "T":
            break
        amount /= 1_024
    return f"{number}B" if unit == "B" else f"{amount:.1f}{unit}"


def span(ms: int) -> str:
    """A span in two units; never less than a second."""
    return text_of_span(max(0, ms) // 1_000 * 1_000)


def age(since_ms: int | None, now_ms: int) -> str:
    """How long ago."""
    return "-" if since_ms is None else span(now_ms - since_ms)


def told_at(at_ms: int, now_ms: int) -> str:
    """Date and time, in UTC, and how long ago that was."""
    return f"{moment(at_ms)}, {age(at_ms, now_ms)} ago"


def clock(at_ms: int) -> str:
    """The time of the day, in UTC."""
    return text_of_ms(at_ms)[11:19]


def moment(at_ms: int | None) -> str:
    """Date and time, in UTC."""
    return "-" if at_ms is None else text_of_ms(at_ms)
