"""When a cron expression fires, as instants, in a time zone.

APScheduler's triggers find the local times; this module converts them to instants, because cron
treats changes of the clock differently:

- A time that the clock skips in spring fires once, at the moment of the change.
- A time that the clock shows twice in autumn fires once, the first time.
- If the hour begins with ``*``, the expression means intervals: skipped times do not fire, and
  repeated times fire twice.

As in cron, 0 and 7 are Sunday, and where both the day of the month and the day of the week are
restricted, either is enough. Invariant: `next_ms` is strictly greater than its argument, and an
expression that never fires is refused when it is created.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from itertools import islice, takewhile
from zoneinfo import ZoneInfo

from apscheduler.triggers.base import BaseTrigger
from apscheduler.triggers.combining import OrTrigger
from apscheduler.triggers.cron import CronTrigger

from dss_core.counted import counted
from dss_core.errors import IllegalCron, IllegalTimeZone

FIRE_YEARS_MAX = 9
"""A cron expression that names no day for so long never fires: the longest wait is for the 29th of
February over the year 2100."""

SHIFT_MS_MAX = 3 * 3_600 * 1_000
"""Longer than any change for daylight saving: times this near to a change of the offset are
examined one by one."""

CRON_BYTES_MAX = 200
"""Five fields with long lists of numbers."""

TIME_ZONE_BYTES_MAX = 64
"""The longest name of the tz database has 32."""


ALIASES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
FIELDS = 5
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_DAY_PART = re.compile(r"(\*|[a-z]{3}|[0-7])(?:-([a-z]{3}|[0-7]))?(?:/([1-7]))?")
_PLAIN = re.compile(r"[0-9a-z*,/-]+")
_SECOND = timedelta(seconds=1)
_SHIFT = timedelta(milliseconds=SHIFT_MS_MAX)
_NOT_AT_ALL = timedelta(0)
_AROUND = (-_SHIFT, _NOT_AT_ALL, _SHIFT)
"""Points at which the offset is compared: if they agree, there is no change between them."""
_SPANS_MS = (24 * 3_600 * 1_000, 3_600 * 1_000)
"""Days, and hours: what due times are counted by."""
_HORIZON = timedelta(days=366 * FIRE_YEARS_MAX)


class FireTimes:
    """When an expression fires. Built by `fire_times`."""

    def __init__(self, expression: str, zone: tzinfo) -> None:
        minute, hour, day, month, weekday = _fields(expression)
        self._zone = zone
        self._by_interval = hour.startswith("*")
        self._triggers: list[CronTrigger] = []
        both = not day.startswith("*") and not weekday.startswith("*")
        days = [(day, "*"), ("*", _weekdays(expression, weekday))] if both else None
        for own_day, own_weekday in days or [(day, _weekdays(expression, weekday))]:
            self._triggers.append(_trigger(expression, (minute, hour, own_day, month, own_weekday)))
        self._trigger: BaseTrigger = OrTrigger(self._triggers)

    def next_ms(self, after_ms: int) -> int | None:
        """The first due time behind an instant; None where there is none within years."""
        after = datetime.fromtimestamp(after_ms / 1_000, UTC).astimezone(self._zone)
        found = self._next(after)
        return None if found is None else int(found.timestamp() * 1_000)

    def following(self, after_ms: int) -> Iterator[int]:
        """The due times behind an instant, one after the other."""
        at_ms = self.next_ms(after_ms)
        while at_ms is not None:
            yield at_ms
            at_ms = self.next_ms(at_ms)

    def between(self, after_ms: int, up_to_ms: int, most: int) -> list[int]:
        """The first due times in ``(after, up to]``."""
        found: list[int] = []
        for at_ms in islice(self.following(after_ms), most):
            if at_ms > up_to_ms:
                break
            found.append(at_ms)
        return found

    def count(self, after_ms: int, up_to_ms: int) -> int:
        """How many due times lie in ``(after, up to]``, however many years that are."""
        return self._count(after_ms, up_to_ms, _SPANS_MS)

    def _count(self, after_ms: int, up_to_ms: int, spans_ms: tuple[int, ...]) -> int:
        """Count by days, days by hours: those in which any are due have as many as each other."""
        if not spans_ms:
            return sum(1 for _ in takewhile(lambda ms: ms <= up_to_ms, self.following(after_ms)))
        count, in_whole = 0, 0
        at_ms = self.next_ms(after_ms)
        while at_ms is not None and at_ms <= up_to_ms:
            begin_ms, end_ms, is_even = self._span_around(at_ms, spans_ms[0])
            is_whole = is_even and begin_ms > after_ms and end_ms <= up_to_ms
            if not (is_whole and in_whole):
                last_ms = min(end_ms - 1, up_to_ms)
                found = self._count(max(after_ms, begin_ms - 1), last_ms, spans_ms[1:])
                in_whole = found if is_whole else in_whole
            count += in_whole if is_whole else found
            after_ms = end_ms - 1
            at_ms = self.next_ms(after_ms)
        return count

    def _span_around(self, at_ms: int, span_ms: int) -> tuple[int, int, bool]:
        """The hour or day that has an instant; whether the clock is not moved in it."""
        moved_ms = self._offset_ms(at_ms)
        begin_ms = (at_ms + moved_ms) // span_ms * span_ms - moved_ms
        end_ms = begin_ms + span_ms
        is_even = self._offset_ms(begin_ms - 1) == moved_ms == self._offset_ms(end_ms)
        return begin_ms, end_ms, is_even

    def _offset_ms(self, at_ms: int) -> int:
        at = datetime.fromtimestamp(at_ms // 1_000, UTC).astimezone(self._zone)
        return int((at.utcoffset() or _NOT_AT_ALL).total_seconds() * 1_000)

    def local(self, at_ms: int) -> str:
        """What the clock shows at an instant: RFC 3339 with the offset, whole seconds."""
        at = datetime.fromtimestamp(at_ms // 1_000, UTC).astimezone(self._zone)
        return at.isoformat().replace("+00:00", "Z")

    def _next(self, after: datetime) -> datetime | None:
        wall = after.replace(tzinfo=None, fold=0)
        # Times before this one repeat if the clock is about to be set back.
        again = self._moved_by(after) if self._by_interval else _NOT_AT_ALL
        wall -= again
        best: datetime | None = None
        while (wall_next := self._next_wall(wall)) is not None:
            wall = wall_next
            instants = self._instants(wall)
            if best is not None and instants and min(instants) > best:
                break
            late = [each for each in instants if each > after]
            best = min([*late, *([best] if best else [])], default=None)
            if best is not None and not again:
                break
        return best

    def _moved_by(self, at: datetime) -> timedelta:
        """The change of the offset near this instant."""
        near = [(at.astimezone(UTC) + shift).astimezone(self._zone) for shift in _AROUND]
        offsets = [each.utcoffset() or _NOT_AT_ALL for each in near]
        return max(offsets) - min(offsets)

    def _next_wall(self, wall: datetime) -> datetime | None:
        """The next matching local time, ignoring time zones."""
        now = wall.replace(tzinfo=UTC, microsecond=0) + _SECOND
        for trigger in self._triggers:
            trigger.end_date = now + _HORIZON
        found = self._trigger.get_next_fire_time(None, now)
        return None if found is None else found.replace(tzinfo=None)

    def _instants(self, wall: datetime) -> list[datetime]:
        """The instants in UTC of this local time that count by the rules above."""
        first = wall.replace(tzinfo=self._zone)
        second = first.replace(fold=1)
        if first.utcoffset() == second.utcoffset():
            return [first.astimezone(UTC)]
        if first.astimezone(UTC).astimezone(self._zone).replace(tzinfo=None) != wall:
            return [] if self._by_interval else [_moved(first, second)]
        if self._by_interval:
            return [first.astimezone(UTC), second.astimezone(UTC)]
        return [first.astimezone(UTC)]


@lru_cache(maxsize=256)
def fire_times(expression: str, time_zone: str) -> FireTimes:
    """When the expression fires in a time zone.

    Raises:
        IllegalCron: it is no cron expression, or it never fires.
        IllegalTimeZone: there is no such time zone.
    """
    if len(expression.encode()) > CRON_BYTES_MAX:
        raise IllegalCron(cron=expression[:CRON_BYTES_MAX], why="it is too long")
    found = FireTimes(expression, _zone(time_zone))
    if found.next_ms(0) is None:
        raise IllegalCron(cron=expression, why="no such day ever comes")
    return found


def _zone(name: str) -> tzinfo:
    if name == "UTC":
        return UTC
    if len(name.encode()) > TIME_ZONE_BYTES_MAX:
        raise IllegalTimeZone(time_zone=name[:TIME_ZONE_BYTES_MAX])
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as unknown:  # a folder of the database is no zone
        raise IllegalTimeZone(time_zone=name) from unknown


def _fields(expression: str) -> list[str]:
    alias = expression.strip().lower()
    written = ALIASES.get(alias, expression).lower().split()
    if alias.startswith("@") and alias not in ALIASES:
        # Whoever wants it at a start asks the system that starts the daemon.
        why = "a schedule runs by the clock" if alias == "@reboot" else "it is none of these"
        raise IllegalCron(cron=expression, why=f"{why}: {', '.join(ALIASES)}")
    if len(written) != FIELDS:
        raise IllegalCron(
            cron=expression, why=f"it has {counted(len(written), 'field')}, not {FIELDS}"
        )
    for field in written:
        if not _PLAIN.fullmatch(field):
            raise IllegalCron(cron=expression, why=f"'{field}' is no field of cron")
    return written


def _trigger(expression: str, fields: tuple[str, ...]) -> CronTrigger:
    minute, hour, day, month, weekday = fields
    try:
        return CronTrigger(
            minute=minute, hour=hour, day=day, month=month, day_of_week=weekday, timezone=UTC
        )
    except ValueError as wrong:
        raise IllegalCron(cron=expression, why=str(wrong)) from wrong


def _weekdays(expression: str, field: str) -> str:
    """The field with the names of days, because APScheduler's numbers begin with Monday."""
    if field == "*":
        return field
    names: set[str] = set()
    for part in field.split(","):
        found = _DAY_PART.fullmatch(part)
        if found is None or part.startswith("*-"):
            raise IllegalCron(cron=expression, why=f"'{part}' is no day of the week")
        first, last, every = found.groups()
        if last is None and every is not None and first != "*":
            raise IllegalCron(cron=expression, why=f"'{part}': a step needs a range or *")
        low = 0 if first == "*" else _day(expression, first)
        high = 6 if first == "*" else low if last is None else _day(expression, last)
        # 5-7 ends with Sunday, and sat-mon goes over it.
        high += 7 if high < low else 0
        names |= {_DAYS[at % 7] for at in range(low, high + 1, int(every or 1))}
    return ",".join(sorted(names))


def _day(expression: str, word: str) -> int:
    if word.isdecimal():
        return int(word)
    if word not in _DAYS:
        raise IllegalCron(cron=expression, why=f"'{word}' is no day of the week")
    return _DAYS.index(word)


def _moved(first: datetime, second: datetime) -> datetime:
    """The instant of the change that skips a local time."""
    zone = first.tzinfo
    low, high = sorted((first.astimezone(UTC), second.astimezone(UTC)))
    before = low.astimezone(zone).utcoffset()
    while high - low > _SECOND:
        middle = low + (high - low) / 2
        if middle.astimezone(zone).utcoffset() == before:
            low = middle
        else:
            high = middle
    return high.replace(microsecond=0)
