"""Which groups a list shows, and in which order: the grammar of conditions over an overview.

Invariant: pure; whatever is written gives groups or a named error. The names of fields are those
that the command line prints, and the shorter ones of before.
"""

from collections.abc import Callable, Iterable
from functools import partial

from dss_core.conditions import Conditions, FieldType, Order, Own, conditions_of, order_of
from dssd.questions.overviews import Overview
from dssd.questions.verdicts import forecast_ms, verdict_of

Read = Callable[[Overview, int], Own]
"""The field of an overview, at a wall time in microseconds."""


def _age_ms(overview: Overview, now_us: int) -> float:
    at_us = overview.oldest_unacked_us
    return 0 if at_us is None else max(0, now_us - at_us) / 1_000


def _paused_until_us(overview: Overview) -> int | None:
    until_ms = overview.group.paused_until_ms
    return None if until_ms is None else until_ms * 1_000


_NUMBERS: dict[str, Read] = {
    "lag": lambda each, _: each.lag,
    "members": lambda each, _: each.borrowers,
    "borrowers": lambda each, _: each.borrowers,
    "standby": lambda each, _: each.standby,
    "streams": lambda each, _: each.streams,
    "acked": lambda each, _: each.counts.acked,
    "filtered": lambda each, _: each.counts.filtered,
    "lost": lambda each, _: each.counts.lost,
    "damaged": lambda each, _: each.counts.damaged,
    "moved": lambda each, _: each.counts.moved,
    "revision": lambda each, _: each.group.revision,
    "leader_epoch": lambda each, _: each.leader_epoch,
    "epoch": lambda each, _: each.leader_epoch,
    "arrivals": lambda each, _: each.arrivals.minute,
    "arrivals_1m": lambda each, _: each.arrivals.minute,
    "arrivals_5m": lambda each, _: each.arrivals.five_minutes,
    "acks": lambda each, _: each.acks.minute,
    "acks_1m": lambda each, _: each.acks.minute,
    "acks_5m": lambda each, _: each.acks.five_minutes,
}
_SPANS: dict[str, Read] = {
    "oldest": _age_ms,
    "drains": forecast_ms,
    "drain_ms": forecast_ms,
    "drained_in": forecast_ms,
    "ack_wait": lambda each, _: each.group.ack_wait_ms,
    "ack_wait_ms": lambda each, _: each.group.ack_wait_ms,
}
_MOMENTS: dict[str, Read] = {
    "created_at": lambda each, _: each.group.created_at_ms * 1_000,
    "age": lambda each, _: each.group.created_at_ms * 1_000,
    "oldest_unacked_at": lambda each, _: each.oldest_unacked_us,
    "paused_until": lambda each, _: _paused_until_us(each),
}
_TEXTS: dict[str, Read] = {
    "name": lambda each, _: each.group.name,
    "filter": lambda each, _: each.group.filter,
    "state": lambda each, _: each.state,
    "health": lambda each, _: verdict_of(each).level,
    "kind": lambda each, _: each.group.kind,
    "protocol": lambda each, _: each.group.protocol,
    "start": lambda each, _: each.group.start,
    "on_damage": lambda each, _: each.group.on_damage,
    "state_reason": lambda each, _: each.reason,
    "reason": lambda each, _: each.reason,
}
_TRUTHS: dict[str, Read] = {
    "lag_exact": lambda each, _: each.lag_exact,
    "paused": lambda each, _: each.group.paused,
}
_BY_TYPE = {
    FieldType.NUMBER: _NUMBERS,
    FieldType.SPAN: _SPANS,
    FieldType.MOMENT: _MOMENTS,
    FieldType.TEXT: _TEXTS,
    FieldType.TRUTH: _TRUTHS,
}
FIELDS: dict[str, Read] = {
    name: read for fields in _BY_TYPE.values() for name, read in fields.items()
}
TYPES: dict[str, FieldType] = {name: kind for kind, fields in _BY_TYPE.items() for name in fields}


class GroupSelection:
    """The groups that a filter lets through, in an order; by name where none is asked for.

    Raises:
        FilterUnreadable, OrderUnreadable: filter or order break the grammar.
    """

    def __init__(self, wanted: str, sort: str, now_us: int) -> None:
        self._conditions: Conditions = conditions_of(wanted, TYPES, now_us=now_us)
        self._order: Order = order_of(sort or "name", TYPES)
        self._now_us = now_us

    def of(self, overviews: Iterable[Overview]) -> list[Overview]:
        """These of them, equal ones by name and filter."""
        chosen = [
            each
            for each in overviews
            if self._conditions.hold(partial(self._read, each), self._now_us)
        ]
        chosen.sort(key=lambda each: (each.group.name, each.group.filter))
        return self._order.sorted(chosen, self._read)

    def _read(self, overview: Overview, field: str) -> Own:
        return FIELDS[field](overview, self._now_us)
