"""The task ``lag-check``: reports groups that are too far behind, as events and by an alert.

A run that finds one fails, so that its exit code says so where a system's own cron runs it.
Invariant: a group counts as behind by what a list of groups shows of it.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dss_core.counted import counted
from dss_core.errors import TaskFailed
from dss_core.sentences import as_sentence
from dss_core.times import text_of_span
from dssd.clock import Clock
from dssd.events.kinds import LAG_HIGH
from dssd.events.model import GROUP_FIELD, Event, Note
from dssd.schedules.tasks import parsing
from dssd.schedules.tasks.alert import AlertFailed, Alerts, hook_name, url
from dssd.schedules.tasks.groups_meant import is_meant
from dssd.schedules.tasks.model import Argument, Given, Say, Task

LAGGARDS_TOLD_MAX = 20
"""Groups that one lag check tells as events, those that are behind most; the rest is counted."""

ALERT_ATTEMPTS_MAX = 5
"""How often an alert is tried, where a lag check asks for most."""


NAME = "lag-check"
_MOST = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class GroupLag:
    """How far behind a group is."""

    name: str
    """NAME@FILTER."""
    lag: int
    exact: bool
    oldest_us: int | None
    """Append time of the oldest record that it has not acknowledged."""


Lags = Callable[[], Awaitable[Sequence[GroupLag]]]


def lag_check(lags: Lags, alerts: Alerts, note: Note, clock: Clock) -> Task:
    """The task, over what says how far behind groups are."""
    return Task(
        NAME,
        "Look for groups that are too far behind; fail, tell and alert if there are any.",
        _LagCheck(lags, alerts, note, clock).work,
        (
            Argument("groups", "Names, joined by commas; * for anything.", parsing.names, "*"),
            Argument("max-lag", "Records that are too many.", parsing.number(0, _MOST), "10000"),
            Argument("max-age", "Of the oldest such record: 15m.", parsing.span_ms),
            Argument("hook", "A program in DATA-DIR/hooks, told by JSON on stdin.", hook_name),
            Argument("url", "An address that JSON is sent to by POST.", url),
            Argument("attempts", "Of an alert.", parsing.number(1, ALERT_ATTEMPTS_MAX), "3"),
        ),
        alone=False,
    )


class _LagCheck:
    def __init__(self, lags: Lags, alerts: Alerts, note: Note, clock: Clock) -> None:
        self._lags = lags
        self._alerts = alerts
        self._note = note
        self._clock = clock

    async def work(self, given: Given, say: Say) -> None:
        looked_at = [each for each in await self._lags() if is_meant(each.name, given["groups"])]
        behind = [each for each in looked_at if self._is_behind(each, given)]
        behind.sort(key=lambda each: -each.lag)
        groups = counted(len(looked_at), "group")
        if not behind:
            say(f"{groups}: none is too far behind.")
            return
        for each in behind:
            say(self._said(each))
        for each in behind[:LAGGARDS_TOLD_MAX]:
            fields = {GROUP_FIELD: each.name, "lag": str(each.lag)}
            self._note(Event(LAG_HIGH, each.name, f"{self._said(each)}.", fields))
        why = f"{len(behind)} of {groups} are too far behind: {behind[0].name} most."
        untold = await self._alert(given, behind, why, say)
        raise TaskFailed(task=NAME, why=" ".join([why, *untold]))

    async def _alert(
        self, given: Given, behind: Sequence[GroupLag], why: str, say: Say
    ) -> list[str]:
        """Alert hook and address, each even if the other fails; returns the failures."""
        document = {
            "kind": "LagAlert",
            "at_ms": self._clock.wall_ms(),
            "summary": why,
            "groups": [self._document(each) for each in behind[:LAGGARDS_TOLD_MAX]],
        }
        told = {"hook": self._alerts.run_hook, "url": self._alerts.post}
        untold: list[str] = []
        for name, tell in told.items():
            try:
                if given[name]:
                    await tell(given[name], document, given["attempts"] or 1, say)
            except AlertFailed as failed:
                untold.append(as_sentence(f"And {failed}"))
        return untold

    def _is_behind(self, group: GroupLag, given: Given) -> bool:
        most, oldest_ms = given["max-lag"], given["max-age"]
        age_ms = self._age_ms(group)
        too_old = oldest_ms is not None and age_ms is not None and age_ms > oldest_ms
        return too_old or (most is not None and group.lag > most)

    def _age_ms(self, group: GroupLag) -> int | None:
        if group.oldest_us is None:
            return None
        return max(0, self._clock.wall_ms() - group.oldest_us // 1_000)

    def _said(self, group: GroupLag) -> str:
        age_ms = self._age_ms(group)
        age = "" if age_ms is None else f", the oldest {text_of_span(age_ms)} old"
        most = "" if group.exact else "at most "
        return f"{group.name} is behind by {most}{counted(group.lag, 'record')}{age}"

    def _document(self, group: GroupLag) -> dict[str, Any]:
        age_ms = self._age_ms(group)
        return {"group": group.name, "lag": group.lag, "exact": group.exact, "age_ms": age_ms}
