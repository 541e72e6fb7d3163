"""Messages as values and back."""

from dataclasses import dataclass
from enum import StrEnum

import pytest

from dss_api.v1 import events_pb2, groups_pb2, operations_pb2, schedules_pb2
from dss_api.values import decoded, encoded, message_of, number_of, word_of
from dss_core.errors import IllegalArgument
from dss_core.progress import Progress


class Kind(StrEnum):
    SHARED = "shared"
    QUEUE = "queue"


@dataclass(frozen=True)
class Some:
    """Some of the fields of a group."""

    name: str
    kind: str
    paused_until_ms: int | None


@dataclass(frozen=True)
class Choosy:
    kind: Kind


@dataclass(frozen=True)
class Settled:
    on_damage: str | None = None


@dataclass(frozen=True)
class Defaulted:
    count: int = 1


@dataclass(frozen=True)
class Held:
    borrower_id: str
    standby: bool


@dataclass(frozen=True)
class Standing:
    stream: str
    progress: Progress
    damaged: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Told:
    fields: dict[str, str]


@dataclass(frozen=True)
class Listed:
    next_ms: tuple[int, ...]


@dataclass(frozen=True)
class Wide:
    name: str
    of_its_own: int


def test_a_field_that_is_absent_is_none_and_one_that_is_zero_is_zero() -> None:
    assert decoded(groups_pb2.Group(name="g"), Some) == Some("g", "", None)
    assert decoded(groups_pb2.Group(name="g", paused_until_ms=0), Some).paused_until_ms == 0


@pytest.mark.parametrize(
    "value",
    [
        (Some("g", "queue", 7), groups_pb2.Group),
        (Some("", "shared", None), groups_pb2.Group),
        (Choosy(Kind.SHARED), groups_pb2.Group),
        (Settled("stall"), operations_pb2.EditGroup),
        (Settled(), operations_pb2.EditGroup),
        (Defaulted(), operations_pb2.SkipRecords),
        (Defaulted(9), operations_pb2.SkipRecords),
        (Held("00ff", standby=True), groups_pb2.Borrower),
        (Standing("s", Progress(3, ((5, 7), (9, 10))), ((1, 2),)), groups_pb2.Grant),
        (Told({"a": "1", "b": ""}), events_pb2.Event),
        (Listed((1, 2)), schedules_pb2.ScheduleDescription),
    ],
    ids=lambda value: str(value[0]),
)
def test_what_was_encoded_is_decoded_as_the_same_value(value: tuple[object, type]) -> None:
    given, message = value
    assert decoded(encoded(given, message), type(given)) == given


def test_ranges_that_overlap_or_lie_below_the_floor_make_sound_progress() -> None:
    message = groups_pb2.Grant()
    message.progress.floor = 4
    for start, end in ((9, 12), (4, 6), (10, 14), (8, 8)):
        message.progress.ranges.add(start=start, end=end)
    assert decoded(message, Standing).progress == Progress(6, ((9, 14),))


def test_the_fields_of_a_map_are_in_order() -> None:
    fields = {f"{number}": "" for number in range(30)}
    assert list(decoded(events_pb2.Event(fields=fields), Told).fields) == sorted(fields)


def test_a_word_that_a_newer_daemon_has_is_its_number_where_any_text_will_do() -> None:
    message = groups_pb2.Group.FromString(b"\x20\x63")  # field 4, kind, is 99
    assert decoded(message, Some).kind == "99"


@pytest.mark.parametrize("number", [0, 99])
def test_a_word_that_is_not_known_is_refused_where_it_must_be_one(number: int) -> None:
    message = groups_pb2.Group.FromString(bytes((0x20, number)))
    with pytest.raises(IllegalArgument, match="it is shared or queue"):
        decoded(message, Choosy)


def test_a_word_that_is_not_known_is_refused_where_none_may_be_given() -> None:
    with pytest.raises(IllegalArgument, match="it is pass or stall"):
        decoded(operations_pb2.EditGroup.FromString(b"\x18\x07"), Settled)


def test_words_and_their_numbers() -> None:
    enum = groups_pb2.OnDamage.DESCRIPTOR
    assert number_of(enum, "on_damage", "stall") == groups_pb2.ON_DAMAGE_STALL
    assert number_of(enum, "on_damage", None) == 0
    assert word_of(enum, "on_damage", groups_pb2.ON_DAMAGE_PASS) == "pass"
    assert word_of(enum, "on_damage", 0) is None
    for refused in (lambda: number_of(enum, "on_damage", "x"), lambda: word_of(enum, "x", 9)):
        with pytest.raises(IllegalArgument, match="it is pass or stall"):
            refused()


def test_a_message_is_made_of_what_it_shares_with_values_and_of_what_is_told() -> None:
    made = message_of(groups_pb2.Group, Wide("g", 3), Wide("h", 4), filter="a/#")
    assert made == groups_pb2.Group(name="g", filter="a/#")
    assert message_of(groups_pb2.Group, Wide("g", 3), name="told").name == "told"


def test_a_field_that_the_message_lacks_is_a_mistake_of_ours() -> None:
    with pytest.raises(KeyError):
        encoded(Wide("g", 3), groups_pb2.Group)
