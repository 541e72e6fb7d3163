"""What a permission covers, and what is none."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dss_core.errors import IllegalArgument, IllegalFilter, PermissionDenied
from dss_core.filters import TopicFilter
from dssd.access.permissions import (
    Demand,
    Permission,
    Principal,
    Role,
    everywhere,
    permission_of,
    read_stored,
    stored,
)


def demand(role: Role, *filters: str, group: str | None = None, in_part: bool = False) -> Demand:
    return Demand(role, tuple(map(TopicFilter.parse, filters)), group, in_part)


EU = permission_of("consume", ["orders/eu/#"], ["billing*"])


@pytest.mark.parametrize(
    "asked",
    [
        demand(Role.CONSUME, "orders/eu/#", group="billing"),
        demand(Role.CONSUME, "orders/eu/+/new", group="billing-2"),
        demand(Role.CONSUME, "orders/eu"),
        demand(Role.READ, "orders/eu/1"),
        demand(Role.READ, "orders/#", in_part=True),
    ],
)
def test_what_is_covered_is_allowed(asked: Demand) -> None:
    assert EU.allows(asked)


@pytest.mark.parametrize(
    "asked",
    [
        demand(Role.CONSUME, "orders/#", group="billing"),
        demand(Role.CONSUME, "orders/us/#", group="billing"),
        demand(Role.CONSUME, "orders/eu/#", group="shipping"),
        demand(Role.CONSUME, "orders/eu/#", "orders/us/1"),
        demand(Role.PRODUCE, "orders/eu/1"),
        demand(Role.OPERATE, group="billing"),
        demand(Role.READ, "payments/#", in_part=True),
        demand(Role.READ, group="shipping"),
        everywhere(Role.CONSUME),
        everywhere(Role.READ),
    ],
)
def test_what_is_not_covered_is_not(asked: Demand) -> None:
    assert not EU.allows(asked)


def test_all_subjects_are_not_those_of_the_daemon_itself() -> None:
    everything = permission_of("consume", ["#"], ["*"])
    assert everything.allows(everywhere(Role.CONSUME))
    assert not everything.allows(demand(Role.CONSUME, "$dlq/billing/#"))


def test_one_permission_must_cover_a_demand_alone() -> None:
    halves = Principal.of(
        "token:ada",
        [permission_of("consume", ["orders/#"], []), permission_of("consume", [], ["billing"])],
    )
    assert not halves.may(demand(Role.CONSUME, "orders/#", group="billing"))
    with pytest.raises(PermissionDenied, match="token:ada may not consume orders/# in the group"):
        halves.require(demand(Role.CONSUME, "orders/#", group="billing"))


def test_a_denial_names_the_permission_that_would_do() -> None:
    nobody = Principal.of("token:ada", [permission_of("read", ["orders/#"], [])])
    with pytest.raises(PermissionDenied) as denied:
        nobody.require(demand(Role.PRODUCE, "orders/us/1"))
    command = "dssctl principals allow token:ada --role produce --topic orders/us/1"
    assert command in denied.value.hint_text


@pytest.mark.parametrize("name", ["cert:worker 1", "cert:x; reboot", "cert:a'b"])
def test_what_a_denial_proposes_is_one_command_whatever_the_names(name: str) -> None:
    nobody = Principal.of(name, [permission_of("read", ["orders/#"], [])])
    subject, group = "orders/'; reboot; '", "billing$(reboot)"
    with pytest.raises(PermissionDenied) as denied:
        nobody.require(demand(Role.CONSUME, subject, group=group))
    command = denied.value.hint_text.partition("with: ")[2].rstrip(".")
    said = ["--role", "consume", "--topic", subject, "--group", group]
    assert shlex.split(command) == ["dssctl", "principals", "allow", name, *said]


def test_an_admin_is_made_without_topics_and_groups() -> None:
    assert everywhere(Role.ADMIN).wanted == "--role admin"


def test_the_state_of_a_group_is_had_by_its_name_or_by_what_it_reads() -> None:
    state = Demand(Role.OPERATE, (TopicFilter.parse("orders/#"),), "billing", by_group=True)
    for said, allows in (
        ((["orders/#"], ["billing"]), True),
        (([], ["bill*"]), True),
        ((["orders/eu/#"], ["billing"]), False),
        ((["orders/#"], []), False),
        (([], ["shipping"]), False),
    ):
        assert permission_of("operate", *said).allows(state) is allows, said


def test_who_has_no_permission_has_no_role() -> None:
    assert Principal.of("token:ada", []).roles == frozenset()


def test_an_administrator_may_do_everything() -> None:
    admin = Principal.of("token:root", [permission_of("admin", [], [])])
    assert all(admin.may(everywhere(role)) for role in Role)
    assert admin.may(demand(Role.CONSUME, "$dlq/billing/#"))


@pytest.mark.parametrize(
    ("role", "topics", "groups"),
    [
        ("owner", ["#"], []),
        ("", ["#"], []),
        ("read", [], []),
        ("produce", [], ["*"]),
        ("admin", ["#"], []),
        ("read", [], ["bill[a-z]"]),
        ("read", [], [""]),
        ("read", [], ["x" * 256]),
        ("read", [f"t{number}" for number in range(65)], []),
    ],
)
def test_what_is_no_permission_is_refused(role: str, topics: list[str], groups: list[str]) -> None:
    with pytest.raises(IllegalArgument):
        permission_of(role, topics, groups)


def test_a_filter_that_breaks_the_rules_is_refused() -> None:
    with pytest.raises(IllegalFilter):
        permission_of("read", ["orders/#/x"], [])


LEVELS = st.lists(st.sampled_from(["a", "b", "+"]), min_size=1, max_size=3).map("/".join)
FILTERS = st.tuples(LEVELS, st.sampled_from(["", "/#"])).map("".join)
GROUPS = st.text(st.sampled_from("ab*"), min_size=1, max_size=3)


@given(st.sampled_from(["read", "consume"]), st.lists(FILTERS, max_size=3), st.lists(GROUPS))
def test_permissions_are_stored_as_they_are(
    role: str, topics: list[str], groups: list[str]
) -> None:
    try:
        one = permission_of(role, topics, groups)
    except IllegalArgument:
        return
    assert read_stored(stored([one, EU])) == (one, EU)


@given(FILTERS, FILTERS, st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=4))
def test_no_record_is_allowed_by_a_filter_that_is_not_granted(
    own: str, asked: str, subject: list[str]
) -> None:
    """Whoever may read by a filter gets no record that their own filters do not match."""
    granted = permission_of("consume", [own], [])
    wanted = TopicFilter.parse(asked)
    text = "/".join(subject)
    if granted.allows(Demand(Role.CONSUME, (wanted,))) and wanted.matches(text):
        assert granted.topics[0].matches(text)


def test_a_permission_is_compared_by_what_it_says() -> None:
    assert Permission(Role.CONSUME, (TopicFilter.parse("orders/eu/#"),), ("billing*",)) == EU


def test_a_filter_with_the_name_of_the_caller_is_for_what_is_their_own() -> None:
    own = Principal.of("token:ada", [permission_of("produce", ["users/%u/#"], [])])
    assert own.may(subject(Role.PRODUCE, "users/ada/x"))
    assert not own.may(subject(Role.PRODUCE, "users/bob/x"))
    assert not own.may(subject(Role.PRODUCE, "users/%u/x"))


@given(st.text(st.sampled_from("a#+/%$*\0 "), max_size=4))
def test_no_name_of_a_certificate_makes_more_of_a_filter(name: str) -> None:
    own = Principal.of(f"cert:{name}", [permission_of("consume", ["users/%u/#"], [])])
    for other in ("users/#", "users/+/#", "users/bob", "users/b/#", "#"):
        assert not own.may(subject(Role.CONSUME, other))


def test_a_filter_with_the_client_id_is_for_the_session_of_that_client() -> None:
    own = Principal.of("token:ada", [permission_of("consume", ["to/%c/#"], ["*"])])
    wanted = subject(Role.CONSUME, "to/c1/#")
    assert not own.may(wanted)
    assert own.as_client("c1").may(wanted)
    assert not own.as_client("c2").may(wanted)
    assert not own.as_client("#").may(wanted)
    assert not own.as_client("").may(wanted)


def subject(role: Role, text: str) -> Demand:
    return Demand(role, (TopicFilter.parse(text),))


def test_who_has_no_permission_may_nothing() -> None:
    denied = Principal.of("token:ada", [])
    assert not denied.roles
    assert not denied.may(Demand(Role.READ))
