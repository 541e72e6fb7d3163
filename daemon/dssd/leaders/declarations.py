"""What a declaration of a group asks for, and whether an existing group matches it.

Invariant: values and their rules only; nothing here is committed or remembered.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from shlex import quote
from typing import Any

from dss_core.errors import (
    GroupExists,
    GroupExistsOtherwise,
    GroupOfAnotherKind,
    IllegalArgument,
    OrderComesWithQueues,
    StartConflict,
)
from dss_core.filters import SubscriptionFilter, TopicFilter
from dss_core.limits import NAK_DELAY_MS_MAX
from dss_core.times import text_of_span
from dssd.leaders.lanes import has_queues
from dssd.limits import (
    ACK_WAIT_MS_MAX,
    BACKOFF_MS,
    BACKOFF_STEPS_MAX,
    MAX_DELIVER_MAX,
)
from dssd.machines.queues import (
    BLOCK,
    DEAD_LETTERS,
    RetryPolicy,
    backoff_text,
    parsed_backoff,
    policy_from,
)
from dssd.machines.start_point import StartPoint, shown_start, start_text
from dssd.store.port import Precondition, Write
from dssd.store.rows import GroupRow

QUEUE_RECORDS = 1_000_000
QUEUE_RECORDS_MAX = 10_000_000
QUEUE_BYTES = 4 << 30
QUEUE_BYTES_MAX = 1 << 40
"""The default and the largest bound on records in the queues of one stream. A holder keeps about
100 bytes of memory for each record that waits."""


METADATA_BYTES_MAX = 4_096
"""The bound on a group's metadata: every list includes it, for 5,000 groups at a time."""

UNUSED_MS_MIN = 1_000
UNUSED_MS_MAX = 365 * 24 * 3_600 * 1_000
"""From the pause between two sweeps to a year; a longer time might as well be for ever."""


PASS, STALL = "pass", "stall"
"""What becomes of records that are confirmed damaged."""

SKIP, DELIVER = "skip", "deliver"
"""In an ordered group: a key goes on after its dead letters (the alternative is `BLOCK`), and
records without a key are sent (the alternative is `DEAD_LETTERS`)."""

SHARD, STICKY = "shard", "sticky"
"""How the streams of a group are shared out: by shards, or each by itself."""

EXCLUSIVE = "exclusive"
"""The kind of a private subscription's group, which its session owns."""

SESSION_DIGITS = 12
"""How many digits of a session id are in the name of an exclusive group."""


Beside = Callable[[GroupRow], Sequence[Write]]
"""The rows that are written together with a group that is being declared."""


def nothing_beside(group: GroupRow) -> Sequence[Write]:
    """Nothing more is written."""
    return ()


@dataclass(frozen=True, slots=True)
class AskedRetries:
    """The settings for records that fail, as asked for; None or empty leaves a setting open.

    Operators set them, for shared groups and queues. A private group has no retry queue and no dead
    letters: they would go with its session, and nobody else could look at them.
    """

    max_deliver: int | None = None
    backoff_ms: tuple[int, ...] = ()
    queue_records: int | None = None
    queue_bytes: int | None = None
    ordered: bool | None = None
    on_dead_letter: str | None = None
    keyless: str | None = None
    allocation: str | None = None
    shards: int | None = None

    def columns(self) -> Mapping[str, Any]:
        """The settings that were given, as columns of a group's row."""
        said = {
            "max_deliver": self.max_deliver,
            "backoff_ms": backoff_text(self.backoff_ms) or None,
            "queue_records": self.queue_records,
            "queue_bytes": self.queue_bytes,
            "ordered": self.ordered,
            "on_dead_letter": self.on_dead_letter,
            "keyless": self.keyless,
            "allocation": self.allocation,
            "shards": self.shards,
        }
        return {name: value for name, value in said.items() if value is not None}

    def of_new_group(self) -> "AskedRetries":
        """With the defaults of a new group; without `max_deliver` it has no queues.

        Raises:
            IllegalArgument: a value is out of its bounds.
        """
        if self.max_deliver is None:
            for name, value in self.columns().items():
                if value is not False:
                    rule = "it counts for groups with max_deliver only, so give both"
                    raise IllegalArgument(argument=f"{name} without max_deliver", rule=rule)
            return NOTHING_SAID
        made = AskedRetries(
            self.max_deliver,
            self.backoff_ms or BACKOFF_MS,
            QUEUE_RECORDS if self.queue_records is None else self.queue_records,
            QUEUE_BYTES if self.queue_bytes is None else self.queue_bytes,
            *self._order(),
        )
        made.check()
        return made

    def _order(self) -> "_Order":
        """The order of a new group with queues, with defaults."""
        if not self.ordered:
            self.refuse_of_order()
            return None, None, None, None, None
        blocks, keyless = self.on_dead_letter or BLOCK, self.keyless or DELIVER
        return True, blocks, keyless, self.allocation or SHARD, self.shards

    def refuse_of_order(self) -> None:
        """Refuse settings that only an ordered group may have.

        Raises:
            IllegalArgument: one of them is given.
        """
        for name, usual in _USUAL.items():
            value = getattr(self, name)
            if value not in (None, usual):
                raise IllegalArgument(
                    argument=f"{name} {value} without ordered",
                    rule="it is of groups that keep the order of keys: give --ordered as well",
                )

    def check(self) -> None:
        """Refuse values that no group can have; all settings are given.

        Raises:
            IllegalArgument: a value is out of its bounds.
        """
        endless = "leave it out for a group whose records come again for ever"
        _check_bound("max_deliver", self.max_deliver, MAX_DELIVER_MAX, f"; {endless}")
        _check_bound("queue_records", self.queue_records, QUEUE_RECORDS_MAX)
        _check_bound("queue_bytes", self.queue_bytes, QUEUE_BYTES_MAX)
        _check_word("on_dead_letter", self.on_dead_letter, BLOCK, SKIP)
        _check_word("keyless", self.keyless, DELIVER, DEAD_LETTERS)
        _check_word("allocation", self.allocation, SHARD, STICKY)
        if self.allocation == STICKY and self.shards is not None:
            rule = "streams are shared out by shards, or each by itself: leave one of them out"
            raise IllegalArgument(argument="shards with allocation sticky", rule=rule)
        if len(self.backoff_ms) > BACKOFF_STEPS_MAX:
            raise IllegalArgument(
                argument=f"backoff of {len(self.backoff_ms):,} steps",
                rule=f"at most {BACKOFF_STEPS_MAX}; the last one repeats",
            )
        for step_ms in self.backoff_ms:
            if not 0 <= step_ms <= NAK_DELAY_MS_MAX:
                raise IllegalArgument(
                    argument=f"backoff of {text_of_span(step_ms)}",
                    rule=f"each step is at most {text_of_span(NAK_DELAY_MS_MAX)}",
                )


NOTHING_SAID = AskedRetries()

_Order = tuple[bool | None, str | None, str | None, str | None, int | None]
"""The order settings of a new group: the last fields of `AskedRetries`, from ``ordered`` on."""

_USUAL = {"on_dead_letter": SKIP, "keyless": DELIVER, "allocation": STICKY, "shards": None}
"""The order settings of a group without order."""


def _check_bound(name: str, value: int | None, maximum: int, more: str = "") -> None:
    if value is None or not 1 <= value <= maximum:
        raise IllegalArgument(argument=f"{name} {value}", rule=f"1 to {maximum:,}{more}")


def _check_word(name: str, value: str | None, *words: str) -> None:
    if value not in (None, *words):
        raise IllegalArgument(argument=f"{name} {value}", rule=" or ".join(words))


NO_QUEUES: Mapping[str, Any] = {
    "max_deliver": 0, "backoff_ms": "", "queue_records": 0, "queue_bytes": 0,
    "ordered": False, "on_dead_letter": SKIP, "keyless": DELIVER,
    "allocation": STICKY, "shards": 0,
}  # fmt: skip
"""The columns about queues in the row of a group without queues."""


def edited_retries(group: GroupRow, fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """The columns that an edit of a group changes, from the fields that were asked for.

    A group that gets queues gets all settings of queues; one that loses them keeps none.

    Raises:
        IllegalArgument: the group cannot have them.
        OrderComesWithQueues: it has queues, and its order would change.
    """
    said: Mapping[str, Any] = {name: value for name, value in fields.items() if name in NO_QUEUES}
    if all(getattr(group, name) == value for name, value in said.items()):
        return fields
    if said.get("max_deliver") == 0:
        _refuse_more_of_no_queues(said)
        return {**fields, **NO_QUEUES}
    if not has_queues(group):
        said = _first_retries(group, said).columns()
    else:
        _check_order_stays(group, said)
    edited = _retries_of(replace(group, **said))
    if not edited.ordered:
        edited.refuse_of_order()
    edited.check()
    return {**fields, **said}


def _check_order_stays(group: GroupRow, said: Mapping[str, Any]) -> None:
    """Refuse to change the order of a group with queues: their entries follow one rule."""
    wanted = said.get("ordered", group.ordered)
    if wanted != group.ordered:
        raise OrderComesWithQueues(
            group=quote(group.full_name),
            is_so="ordered" if group.ordered else "not ordered",
            wanted=" --ordered" if wanted else "",
            max_deliver=said.get("max_deliver", group.max_deliver),
        )


def _refuse_more_of_no_queues(said: Mapping[str, Any]) -> None:
    for name, value in said.items():
        if value != NO_QUEUES[name]:
            rule = "a group without queues has none of it"
            raise IllegalArgument(argument=f"{name} with max_deliver 0", rule=rule)


def _first_retries(group: GroupRow, said: Mapping[str, Any]) -> AskedRetries:
    """The settings of a group that had no queues."""
    if group.kind == EXCLUSIVE:
        rule = "a private group ends with its session, and nobody else could look at its queues"
        raise IllegalArgument(argument=f"max_deliver of {group.name}", rule=rule)
    backoff = said.get("backoff_ms", "")
    return AskedRetries(
        said.get("max_deliver"),
        parsed_backoff(backoff) if backoff else (),
        said.get("queue_records"),
        said.get("queue_bytes"),
        said.get("ordered"),
        said.get("on_dead_letter"),
        said.get("keyless"),
        said.get("allocation"),
        said.get("shards"),
    ).of_new_group()


def _retries_of(group: GroupRow) -> AskedRetries:
    backoff_ms = parsed_backoff(group.backoff_ms)
    return AskedRetries(
        group.max_deliver,
        backoff_ms,
        group.queue_records,
        group.queue_bytes,
        group.ordered,
        group.on_dead_letter,
        group.keyless,
        group.allocation,
        group.shards or None,
    )


@dataclass(frozen=True, slots=True)
class GroupRequest:
    """The group that a declaration asks for."""

    name: str
    filter: TopicFilter
    kind: str
    start: StartPoint | None
    ack_wait_ms: int | None
    session_id: bytes | None = None
    protocol: str | None = None
    on_damage: str | None = None
    retries: AskedRetries = NOTHING_SAID
    metadata: str = ""
    unused_ms: int = 0
    fence: Precondition | None = None
    beside: Beside = nothing_beside

    @property
    def key(self) -> tuple[str, str]:
        """Name and filter: what makes it this group."""
        return self.name, self.filter.text


def policy_of(group: GroupRow) -> RetryPolicy | None:
    """How the group treats records that fail; None: it has no queues."""
    return policy_from(
        group.max_deliver,
        group.backoff_ms,
        group.queue_records,
        group.queue_bytes,
        ordered=group.ordered,
        on_dead_letter=group.on_dead_letter,
        keyless=group.keyless,
    )


def check_keeping(asked: GroupRequest) -> None:
    """Refuse metadata and an expiry that no group can have.

    Raises:
        IllegalArgument: a value is out of its bounds.
    """
    if len(asked.metadata.encode()) > METADATA_BYTES_MAX:
        raise IllegalArgument(argument="metadata", rule=f"at most {METADATA_BYTES_MAX:,} bytes")
    if asked.unused_ms and not UNUSED_MS_MIN <= asked.unused_ms <= UNUSED_MS_MAX:
        rule = f"{UNUSED_MS_MIN:,} to {UNUSED_MS_MAX:,} ms, or 0 for a group that stays"
        raise IllegalArgument(argument="unused_ms", rule=rule)


def check_settings(ack_wait_ms: int, on_damage: str) -> None:
    """Refuse settings that no group can have.

    Raises:
        IllegalArgument: a value is out of its bounds.
    """
    if not 0 < ack_wait_ms <= ACK_WAIT_MS_MAX:
        raise IllegalArgument(argument="ack_wait", rule=f"1 to {ACK_WAIT_MS_MAX:,} ms")
    if on_damage not in (PASS, STALL):
        raise IllegalArgument(argument="on_damage", rule=f"{PASS} or {STALL}")


def asked_by_session(
    parsed: SubscriptionFilter,
    start: StartPoint | None,
    ack_wait_ms: int | None,
    session_id: bytes,
    subscription: int,
) -> GroupRequest:
    """What a subscription asks for: a shared group, or one of its own."""
    if parsed.group is not None:
        return GroupRequest(parsed.group, parsed.filter, kind_asked(parsed), start, ack_wait_ms)
    name = f"~{session_id.hex()[:SESSION_DIGITS]}/{subscription}"
    return GroupRequest(name, parsed.filter, EXCLUSIVE, start, ack_wait_ms, session_id)


def kind_asked(parsed: SubscriptionFilter) -> str:
    """The kind that is written in the filter."""
    return "queue" if parsed.queue else "shared"


def check_kind(group: GroupRow, asked: str) -> None:
    """Refuse a group that was declared as something else.

    A queue promises more than a shared group does, so neither stands for the other.

    Raises:
        GroupOfAnotherKind: it was.
    """
    if group.kind == asked:
        return
    written = SubscriptionFilter(group.name, group.kind == "queue", TopicFilter.parse(group.filter))
    raise GroupOfAnotherKind(
        group=group.name, declared=group.kind, asked=asked, written=written.text
    )


def check_as_asked(group: GroupRow, asked: GroupRequest, *, accepted: bool) -> None:
    """Refuse an existing group, unless that is accepted and its settings are as asked for.

    Raises:
        GroupExistsOtherwise: a setting differs.
        GroupExists: an existing group is not accepted.
    """
    settings = {"protocol": asked.protocol, "on_damage": asked.on_damage}
    settings |= {"metadata": asked.metadata or None}
    said = {name: value for name, value in settings.items() if value is not None}
    said |= asked.retries.columns()
    differs = {name: value for name, value in said.items() if getattr(group, name) != value}
    if differs:
        has = (
            f"{_option(name, value)} was asked for, and it has {_shown(name, getattr(group, name))}"
            for name, value in differs.items()
        )
        raise GroupExistsOtherwise(
            group=group.name, differences="; ".join(has), advice=_advice(group, differs)
        )
    if not accepted:
        raise GroupExists(group=group.name)


def _advice(group: GroupRow, differs: Mapping[str, Any]) -> str:
    as_it_is = "leave that out and pass --if-not-exists to accept it as it is"
    if "protocol" in differs or "metadata" in differs or differs.get("ordered") is False:
        return f"No edit makes it so: {as_it_is}, or take another name."
    if "allocation" in differs or "shards" in differs:
        count = differs.get("shards", group.shards) or "N"
        return (
            f"Its streams are cut anew with dssctl shards set-count {quote(group.full_name)} "
            f"{count}; or {as_it_is}."
        )
    options = " ".join(_option(name, value) for name, value in differs.items())
    return f"Make it so: dssctl groups edit {quote(group.full_name)} {options}; or {as_it_is}."


def _option(name: str, value: object) -> str:
    option = f"--{name.removesuffix('_ms').replace('_', '-')}"
    return option if value is True else f"{option} {_shown(name, value)}"


def _shown(name: str, value: Any) -> str:  # noqa: ANN401 - of any column
    """A column as an option of `groups edit` takes it."""
    if value in ("", None) or (value == 0 and name != "ordered"):
        return "none"
    match name:
        case "backoff_ms":
            return ",".join(map(_exact_span, parsed_backoff(value)))
        case "queue_bytes":
            return f"{value}B"
        case "ordered":
            return "order" if value else "no order"
        case _:
            return str(value)


def _exact_span(ms: int) -> str:
    """An exact text: users give it back as an option, so nothing may be rounded."""
    seconds, rest_ms = divmod(ms, 1_000)
    return f"{ms}ms" if rest_ms else f"{seconds}s"


def check_start(group: GroupRow, start: StartPoint | None) -> None:
    """Refuse a group that was declared with another start.

    Raises:
        StartConflict: it was.
    """
    if start is not None and start_text(start) != group.start:
        raise StartConflict(
            group=group.name,
            declared=shown_start(group.start),
            asked=shown_start(start_text(start)),
        )
