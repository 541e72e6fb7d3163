"""What each method asks for: every one of them, for every role."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, TypeVar, cast

import pytest

from dss_api.v1 import (
    daemon_pb2,
    groups_pb2,
    jobs_pb2,
    log_pb2,
    operations_pb2,
    queues_pb2,
    sessions_pb2,
    topics_pb2,
    types_pb2,
)
from dss_core.errors import (
    GroupAmbiguous,
    GroupNotFound,
    OnlyBesideDaemon,
    OperationNotFound,
    PermissionDenied,
)
from dss_core.filters import TopicFilter
from dssd.access.access import Login
from dssd.access.permissions import Principal, Role, permission_of
from dssd.rpc.demands import (
    ALL_OF_THEM,
    BESIDE,
    DEMANDS,
    FREE,
    OWN_OPERATIONS,
    Known,
    demands_of_change,
)
from dssd.rpc.permits import Permits
from dssd.rpc.principal import METHOD_ROLES, require
from dssd.store.rows import GroupRow, OperationRow
from dssd.store.schedule_rows import ScheduleRow
from dssd.topics.catalogue import Topic

A = TypeVar("A")


class Topics:
    """`orders` owns the subjects below its name; `mixed` those of two."""

    def find(self, name: str) -> Topic | None:
        patterns = {"orders": ("orders/#",), "mixed": ("eu/#", "us/#")}.get(name)
        if patterns is None:
            return None
        parsed = tuple(map(TopicFilter.parse, patterns))
        return cast("Topic", SimpleNamespace(name=name, patterns=parsed))


class Groups:
    """`billing` reads all orders, another of that name the subjects of `eu`; of those named `twice`
    each reads one of the two."""

    def find(self, text: str) -> GroupRow:
        if text == "twice":
            raise GroupAmbiguous(group=text, candidates="twice@eu/#, twice@orders/#")
        filters = {"billing": "orders/#", "billing@orders/#": "orders/#", "billing@eu/#": "eu/#"}
        if text not in filters:
            raise GroupNotFound(group=text)
        return cast("GroupRow", SimpleNamespace(filter=filters[text]))

    def groups(self) -> Sequence[GroupRow]:
        return [
            cast(
                "GroupRow",
                SimpleNamespace(
                    name=name, filter=own, full_name=f"{name}@{own}", allocation=allocation
                ),
            )
            for name, own, allocation in (
                ("billing", "orders/#", "shard"),
                ("twice", "orders/#", ""),
                ("twice", "eu/#", ""),
            )
        ]


class Operations:
    """Number 7 is Ada's."""

    def get(self, number: int) -> OperationRow:
        if number != 7:
            raise OperationNotFound(number=number)
        return cast("OperationRow", SimpleNamespace(principal="token:ada"))


class Jobs:
    """Copies of orders."""

    def topics_of(self, name: str) -> tuple[str, str] | None:
        return {
            "copy": ("orders", "copied"),
            "audit": ("orders", ""),
            "mend": ("orders", "copied"),
        }.get(name)

    def dead_letters_of(self, name: str) -> str:
        return "billing" if name == "mend" else ""


class Schedules:
    """One exports orders."""

    def find(self, name: str) -> ScheduleRow | None:
        if name != "nightly":
            return None
        return cast("ScheduleRow", SimpleNamespace(arguments='{"topic": "orders"}'))


KNOWN = Known(Topics(), Groups(), Operations(), Jobs(), Schedules())
PERMITS = Permits(KNOWN)
ATTACH = "/dss_api.v1.Sessions/Attach"


def login(*said: str) -> Login:
    """Ada's, with permissions as a command line has them."""
    permissions = []
    for text in said:
        role, *rest = text.split()
        topics = [each for each in rest if not each.startswith("@")]
        groups = [each[1:] for each in rest if each.startswith("@")]
        permissions.append(permission_of(role, topics, groups))
    return Login(Principal.of("token:ada", permissions), b"secret")


def may(who: Login, method: str, message: object) -> bool:
    name = f"/dss_api.v1.{method}"
    check = PERMITS.check_of(name, who)
    assert check is not None
    try:
        require(who.principal, name)
        check(message)
    except PermissionDenied:
        return False
    return True


def test_every_method_asks_for_something_in_one_place() -> None:
    places = (FREE, BESIDE, ALL_OF_THEM, DEMANDS, OWN_OPERATIONS)
    listed = [method for place in places for method in place]
    assert sorted(listed) == sorted(METHOD_ROLES)


def test_a_method_that_nobody_thought_of_is_denied_to_whoever_is_limited() -> None:
    who = login("read # @*", "produce #", "consume # @*", "operate # @*")
    check = PERMITS.check_of("/dss_api.v1.Topics/Explode", who)
    assert check is not None
    with pytest.raises(PermissionDenied):
        check(topics_pb2.ListTopicsRequest())


@pytest.mark.parametrize("method", sorted(ALL_OF_THEM))
def test_what_concerns_all_is_for_who_has_the_role_for_all(method: str) -> None:
    role = ALL_OF_THEM[method]
    name = method.removeprefix("/dss_api.v1.")
    if not method.startswith("/dss_api.") or role is Role.ADMIN:
        return
    message = operations_pb2.GetOperationRequest()
    assert may(login(f"{role} # @*"), name, message)
    assert not may(login(f"{role} orders/# @*"), name, message)
    assert not may(login(f"{role} # @bill*"), name, message)


def test_an_administrator_is_not_limited_and_nobody_else_says_who_may() -> None:
    assert PERMITS.check_of("/dss_api.v1.Access/Put", login("admin")) is None
    everything = login("read # @*", "produce #", "consume # @*", "operate # @*")
    assert not may(everything, "Access/Put", None)
    assert not may(everything, "Access/List", None)


@pytest.mark.parametrize("method", sorted(BESIDE))
def test_what_needs_the_daemons_files_is_for_processes_beside_it(method: str) -> None:
    with pytest.raises(OnlyBesideDaemon):
        PERMITS.check_of(method, login("admin"))
    local = Login(Principal("local:ada", frozenset(Role)))
    assert PERMITS.check_of(method, local) is None


@pytest.mark.parametrize("method", ["Acquire", "Renew", "Stage", "Commit", "GiveUp"])
def test_a_driver_reads_the_source_of_its_job_and_writes_the_target(method: str) -> None:
    copy, audit = jobs_pb2.StageUp(job="copy"), jobs_pb2.StageUp(job="audit")
    both = login("consume orders/#", "produce copied/#")
    assert may(both, f"Jobs/{method}", copy)
    for half in (login("consume orders/#"), login("produce copied/#"), login("operate orders/#")):
        assert not may(half, f"Jobs/{method}", copy)
    assert may(login("consume orders/#"), f"Jobs/{method}", audit)
    assert not may(both, f"Jobs/{method}", jobs_pb2.StageUp(job="unknown"))
    assert may(both, f"Jobs/{method}", jobs_pb2.StageUp()), "a further piece"


def test_dead_letters_of_a_topic_are_for_who_consumes_from_their_group() -> None:
    whole, topic = login("consume orders/# @billing"), login("consume orders/#")
    calls = (
        ("Log/Read", log_pb2.ReadRequest(stream="orders/0/0", dead_letters="billing")),
        ("Topics/Locate", topics_pb2.LocateRequest(name="orders", dead_letters="billing")),
    )
    for method, message in calls:
        assert may(whole, method, message), method
        assert not may(topic, method, message), method
        assert not may(login("consume orders/# @other"), method, message), method
    drive = jobs_pb2.StageUp(job="mend")
    assert may(login("consume orders/# @billing", "produce copied/#"), "Jobs/Stage", drive)
    assert not may(login("consume orders/#", "produce copied/#"), "Jobs/Stage", drive)
    job = operations_pb2.CreateJob(source="orders", target="copied", dead_letters="billing")
    make = operations_pb2.PlanRequest(change=operations_pb2.Change(create_job=job))
    may_all = "operate # @*", "produce copied/#"
    assert may(login(*may_all, "consume orders/# @billing"), "Operations/Plan", make)
    assert not may(login(*may_all, "consume orders/#"), "Operations/Plan", make)


def test_topics_are_seen_in_part_and_changed_whole() -> None:
    describe = topics_pb2.DescribeTopicRequest(name="mixed")
    remove = topics_pb2.RemoveTopicRequest(name="mixed")
    part = login("operate eu/#")
    assert may(part, "Topics/Describe", describe)
    assert not may(part, "Topics/Remove", remove)
    assert may(login("operate eu/# us/#"), "Topics/Remove", remove)
    assert not may(login("produce orders/#"), "Topics/Describe", describe)
    assert not may(login("read # @*"), "Topics/Remove", remove)


def test_a_topic_that_is_not_there_is_asked_for_by_its_name() -> None:
    request = topics_pb2.DescribeTopicRequest(name="secret")
    assert not may(login("read orders/#"), "Topics/Describe", request)
    assert may(login("read secret/#"), "Topics/Describe", request)


def test_a_topic_is_made_where_all_of_its_patterns_are_allowed() -> None:
    who = login("operate orders/#")
    assert may(who, "Topics/Create", topics_pb2.CreateTopicRequest(name="orders"))
    wide = topics_pb2.CreateTopicRequest(name="orders", patterns=["orders/#", "us/#"])
    assert not may(who, "Topics/Create", wide)


def test_records_are_published_where_each_subject_is_allowed() -> None:
    def request(*subjects: str) -> log_pb2.PublishRequest:
        records = [types_pb2.Record(subject=each) for each in subjects]
        return log_pb2.PublishRequest(topic="orders", records=records)

    who = login("produce orders/eu/#")
    assert may(who, "Log/Publish", request("orders/eu/1", "orders/eu"))
    assert not may(who, "Log/Publish", request("orders/eu/1", "orders/us/1"))
    assert not may(who, "Log/Publish", request("orders"))
    assert not may(login("consume orders/#"), "Log/Publish", request("orders/eu/1"))


def test_a_call_that_produces_is_checked_where_it_begins_and_where_its_topic_changes() -> None:
    check = PERMITS.check_of("/dss_api.v1.Log/Produce", login("produce orders/eu/#"))
    assert check is not None
    check(log_pb2.ProduceRequest(topic="orders"))
    check(log_pb2.ProduceRequest())
    with pytest.raises(PermissionDenied):
        check(log_pb2.ProduceRequest(topic="mixed"))


def test_records_are_read_by_a_filter_that_is_covered() -> None:
    who = login("consume orders/eu/#")
    assert may(who, "Log/Read", log_pb2.ReadRequest(filter="orders/eu/+"))
    assert not may(who, "Log/Read", log_pb2.ReadRequest(filter="orders/#"))
    assert not may(who, "Log/Read", log_pb2.ReadRequest(filter="#", stream="orders/0/0"))
    stream = log_pb2.ReadRequest(stream="orders/0/0")
    assert not may(who, "Log/Read", stream)
    assert may(login("consume orders/#"), "Log/Read", stream)
    internal = log_pb2.ReadRequest(filter="$dlq/1/#")
    assert not may(login("consume # @*"), "Log/Read", internal)


def test_each_subscription_of_a_session_is_checked() -> None:
    check = PERMITS.check_of(ATTACH, login("consume orders/# @billing*"))
    assert check is not None

    def subscribe(text: str) -> sessions_pb2.SessionUp:
        return sessions_pb2.SessionUp(subscribe=sessions_pb2.Subscribe(filter=text))

    check(sessions_pb2.SessionUp(open=sessions_pb2.Open(client_id="ada")))
    check(subscribe("$share/billing-2/orders/eu/#"))
    check(subscribe("orders/eu/#"))
    for denied in ("$share/shipping/orders/#", "$queue/shipping/orders/#", "#", "$share/billing/#"):
        with pytest.raises(PermissionDenied):
            check(subscribe(denied))


@pytest.mark.parametrize("text", ["billing", "billing@orders/#", "$share/billing/orders/#"])
def test_a_group_is_asked_for_by_its_name_however_it_is_written(text: str) -> None:
    request = groups_pb2.DescribeGroupRequest(group=text)
    assert may(login("read @bill*"), "Groups/Describe", request)
    assert not may(login("read # @ship*"), "Groups/Describe", request)
    assert not may(login("read @bill*"), "Groups/Remove", groups_pb2.RemoveGroupRequest(group=text))


def test_all_groups_are_for_who_may_see_all() -> None:
    assert not may(login("read @bill*"), "Groups/Stuck", groups_pb2.StuckRequest())
    assert may(login("read # @*"), "Groups/Stuck", groups_pb2.StuckRequest())


def test_what_failed_in_a_group_are_records_that_who_reads_it_may_see() -> None:
    request = queues_pb2.ListEntriesRequest(group="billing", whole=True)
    assert may(login("consume orders/# @billing"), "Queues/List", request)
    assert not may(login("consume orders/eu/# @billing"), "Queues/List", request)
    assert not may(login("read # @*"), "Queues/List", request)


@pytest.mark.parametrize("kind", [field.name for field in operations_pb2.Change.DESCRIPTOR.fields])
def test_every_change_asks_to_operate(kind: str) -> None:
    empty = operations_pb2.Change()
    getattr(empty, kind).SetInParent()
    demands = list(demands_of_change(empty, KNOWN)) if kind not in GROUPED else []
    assert kind in GROUPED or demands[0].role is Role.OPERATE


GROUPED = {"edit_topic", "remove_topic", "add_storage_topic", "switch_topic", "grow_topic"}
"""Of a topic, which has to be named."""


def test_changes_are_for_who_operates_what_they_name() -> None:
    pause = operations_pb2.PlanRequest(
        change=operations_pb2.Change(pause_group=operations_pb2.PauseGroup(group="billing"))
    )
    edit = operations_pb2.PlanRequest(
        change=operations_pb2.Change(edit_topic=operations_pb2.EditTopic(topic="orders"))
    )
    close = operations_pb2.PlanRequest(
        change=operations_pb2.Change(close_session=operations_pb2.CloseSession(client_id="bob"))
    )
    own = login("operate orders/# @billing")
    assert may(own, "Operations/Plan", pause)
    assert may(own, "Operations/Plan", edit)
    assert not may(own, "Operations/Plan", close)
    assert not may(login("operate @shipping"), "Operations/Plan", pause)
    assert not may(login("operate orders/eu/#"), "Operations/Plan", edit)
    assert not may(login("read # @*"), "Operations/Plan", pause)
    assert may(login("operate # @*"), "Operations/Plan", close)


def test_who_makes_a_job_reads_its_source_and_writes_its_target() -> None:
    job = operations_pb2.CreateJob(name="copy", kind="replay", source="orders", target="mixed")
    request = operations_pb2.ApplyRequest(change=operations_pb2.Change(create_job=job))
    everywhere = "operate # @*"
    assert may(login(everywhere, "consume orders/#", "produce #"), "Operations/Apply", request)
    assert not may(login(everywhere, "consume orders/#"), "Operations/Apply", request)
    assert not may(login(everywhere, "produce #"), "Operations/Apply", request)
    assert not may(login("consume #", "produce #"), "Operations/Apply", request)


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("create_schedule", {"schedule": "s", "task": "export", "arguments": {"topic": "orders"}}),
        ("edit_schedule", {"schedule": "nightly", "cron": "@daily"}),
        ("edit_schedule", {"schedule": "s", "arguments": {"topic": "orders"}}),
        ("resume_schedule", {"schedule": "nightly"}),
        ("run_task", {"task": "export", "arguments": {"topic": "orders"}}),
    ],
)
def test_who_has_an_export_run_reads_what_it_exports(kind: str, fields: dict[str, Any]) -> None:
    change = operations_pb2.Change()
    asked = getattr(change, kind)
    for name, value in fields.items():
        if name == "arguments":
            asked.arguments.update(value)
        else:
            setattr(asked, name, value)
    request = operations_pb2.ApplyRequest(change=change)
    everywhere = "operate # @*"
    assert may(login(everywhere, "consume orders/#"), "Operations/Apply", request)
    assert not may(login(everywhere, "consume orders/eu/#"), "Operations/Apply", request)
    assert not may(login("consume #"), "Operations/Apply", request)


def test_an_operation_is_seen_by_who_made_it() -> None:
    own = operations_pb2.GetOperationRequest(number=7)
    other = operations_pb2.GetOperationRequest(number=8)
    who = login("operate @billing")
    assert may(who, "Operations/Get", own)
    assert not may(who, "Operations/Get", other)
    assert may(login("read # @*"), "Operations/Get", other)
    assert may(who, "Operations/Cancel", operations_pb2.CancelOperationRequest(number=7))


def test_lists_show_what_is_ones_own() -> None:
    who = login("consume orders/# @billing").principal
    topics = topics_pb2.ListTopicsReply(
        topics=[
            topics_pb2.TopicSummary(topic=topics_pb2.Topic(name=name))
            for name in ("orders", "mixed", "other")
        ]
    )
    groups = groups_pb2.ListGroupsReply(
        groups=[
            groups_pb2.Group(name=name, filter=own)
            for name, own in (("billing", "orders/eu/#"), ("billing", "eu/#"), ("shipping", "#"))
        ]
    )
    grants = groups_pb2.ListGrantsReply(
        grants=[
            groups_pb2.Grant(group=name, filter=own)
            for name, own in (("billing", "orders/#"), ("billing", "eu/#"), ("shipping", "#"))
        ]
    )

    def trimmed(method: str, answer: A) -> A:
        shown: A = PERMITS.trimmed(f"/dss_api.v1.{method}", who, answer)
        return shown

    assert [each.topic.name for each in trimmed("Topics/List", topics).topics] == ["orders"]
    assert [each.name for each in trimmed("Groups/List", groups).groups] == ["billing"]
    assert [each.group for each in trimmed("Grants/List", grants).grants] == ["billing"]


def test_a_status_says_of_the_machine_only_who_may_see_all() -> None:
    said = daemon_pb2.DaemonStatus(version="1", data_dir="/data", operators_socket="/data/ops.sock")
    everything, part = login("read # @*").principal, login("read orders/#").principal
    method = "/dss_api.v1.Daemon/Status"
    assert PERMITS.trimmed(method, everything, said).data_dir == "/data"
    shown = PERMITS.trimmed(method, part, said)
    assert (shown.version, shown.data_dir, shown.operators_socket) == ("1", "", "")


def test_jobs_that_are_there_are_seen_by_who_may_see_all() -> None:
    request = jobs_pb2.GetJobRequest(job="copy")
    assert may(login("read # @*"), "Jobs/Get", request)
    assert not may(login("read orders/# @*"), "Jobs/Get", request)


def test_the_client_id_of_a_call_is_that_of_its_opening() -> None:
    who = login("consume to/%c/# @*")
    check = PERMITS.check_of("/dss_api.v1.Sessions/Attach", who)
    assert check is not None
    subscribe = sessions_pb2.Subscribe(subscription=1, filter="to/c1/#")
    with pytest.raises(PermissionDenied):
        check(sessions_pb2.SessionUp(subscribe=subscribe))
    check(sessions_pb2.SessionUp(open=sessions_pb2.Open(client_id="c1")))
    check(sessions_pb2.SessionUp(subscribe=subscribe))
    assert not may(who, "Sessions/Attach", sessions_pb2.SessionUp(subscribe=subscribe))


@pytest.mark.parametrize("kind", ["create_schedule", "edit_schedule"])
def test_whoever_has_records_exported_by_a_schedule_may_read_them(kind: str) -> None:
    change = operations_pb2.Change()
    getattr(change, kind).arguments["topic"] = "orders"
    request = operations_pb2.PlanRequest(change=change)
    assert may(login("operate # @*", "consume orders/#"), "Operations/Plan", request)
    assert not may(login("operate # @*"), "Operations/Plan", request)
    assert not may(login("consume # @*"), "Operations/Plan", request)


def test_a_growth_with_shards_asks_for_the_groups_that_it_cuts() -> None:
    grow = operations_pb2.GrowTopic(topic="orders", partitions=12)
    cut = operations_pb2.GrowTopic(topic="orders", partitions=12, with_shards=True)
    named = operations_pb2.GrowTopic(
        topic="orders",
        partitions=12,
        shard_counts=[operations_pb2.GroupShards(group="audit@orders/#", shards=6)],
    )

    def changes(who: Login, growth: operations_pb2.GrowTopic) -> bool:
        change = operations_pb2.Change(grow_topic=growth)
        return may(who, "Operations/Apply", operations_pb2.ApplyRequest(change=change))

    topic, both = login("operate orders/#"), login("operate orders/# @billing")
    assert [changes(topic, each) for each in (grow, cut, named)] == [True, False, False]
    assert [changes(both, each) for each in (grow, cut, named)] == [True, True, False]


def said(who: Login, method: str, message: object) -> str:
    """What a denial of the call says."""
    check = PERMITS.check_of(f"/dss_api.v1.{method}", who)
    assert check is not None
    with pytest.raises(PermissionDenied) as denied:
        check(message)
    return f"{denied.value} {denied.value.hint_text}"


def test_a_group_of_the_same_name_over_other_topics_is_another() -> None:
    who = login("operate orders/# @billing")
    change = operations_pb2.Change
    for kind, text, is_own in (
        ("pause_group", "billing", True),
        ("pause_group", "billing@orders/#", True),
        ("pause_group", "billing@eu/#", False),
    ):
        asked = change()
        getattr(asked, kind).group = text
        assert may(who, "Operations/Plan", operations_pb2.PlanRequest(change=asked)) == is_own, text
    for request, method in (
        (groups_pb2.DescribeGroupRequest(group="billing@eu/#"), "Groups/Describe"),
        (groups_pb2.GroupOffsetsRequest(group="billing@eu/#"), "Groups/Offsets"),
        (groups_pb2.RemoveGroupRequest(group="billing@eu/#"), "Groups/Remove"),
        (groups_pb2.ListGrantsRequest(group="billing@eu/#"), "Grants/List"),
    ):
        assert not may(who, method, request), method
        assert may(login("operate @billing"), method, request), "by its name alone"
    grow = operations_pb2.GrowTopic(
        topic="orders",
        shard_counts=[operations_pb2.GroupShards(group="billing@eu/#", shards=2)],
    )
    applied = operations_pb2.ApplyRequest(change=change(grow_topic=grow))
    assert not may(who, "Operations/Apply", applied)


@pytest.mark.parametrize(
    ("method", "request_"),
    [
        ("Groups/Describe", groups_pb2.DescribeGroupRequest(group="twice")),
        ("Groups/Remove", groups_pb2.RemoveGroupRequest(group="twice")),
        ("Queues/List", queues_pb2.ListEntriesRequest(group="twice")),
    ],
)
def test_which_groups_have_one_name_is_told_to_who_may_see_each(
    method: str, request_: object
) -> None:
    names = [f"{role} orders/# @*" for role in ("operate", "consume")]
    assert "eu/#" not in said(login(*names), method, request_)
    assert may(login(*names, "operate eu/# @*", "consume eu/# @*"), method, request_)
    assert may(login("operate @twice", "consume # @twice"), method, request_)


def test_what_changes_all_of_a_group_takes_all_that_it_reads() -> None:
    pause = operations_pb2.Change(pause_group=operations_pb2.PauseGroup(group="billing"))
    request = operations_pb2.PlanRequest(change=pause)
    assert not may(login("operate orders/eu/# @billing"), "Operations/Plan", request)
    describe = groups_pb2.DescribeGroupRequest(group="billing")
    assert may(login("operate orders/eu/# @billing"), "Groups/Describe", describe)


@pytest.mark.parametrize(
    ("method", "hidden", "missing"),
    [
        (
            "Topics/Describe",
            topics_pb2.DescribeTopicRequest(name="mixed"),
            topics_pb2.DescribeTopicRequest(name="absent"),
        ),
        (
            "Log/Produce",
            log_pb2.ProduceRequest(topic="mixed"),
            log_pb2.ProduceRequest(topic="absent"),
        ),
        (
            "Log/Read",
            log_pb2.ReadRequest(stream="mixed/0/0", filter="orders/eu/#"),
            log_pb2.ReadRequest(stream="absent/0/0", filter="orders/eu/#"),
        ),
        (
            "Groups/Why",
            groups_pb2.WhyRequest(group="billing", topic="mixed"),
            groups_pb2.WhyRequest(group="billing", topic="absent"),
        ),
        ("Jobs/Get", jobs_pb2.GetJobRequest(job="copy"), jobs_pb2.GetJobRequest(job="absent")),
        ("Jobs/Stage", jobs_pb2.StageUp(job="copy"), jobs_pb2.StageUp(job="absent")),
        (
            "Queues/List",
            queues_pb2.ListEntriesRequest(group="billing"),
            queues_pb2.ListEntriesRequest(group="absent"),
        ),
    ],
)
def test_who_may_not_know_that_it_is_there_is_told_the_same_as_if_it_was_not(
    method: str, hidden: object, missing: object
) -> None:
    who = login(
        "consume orders/eu/# @bill*" if method.startswith(("Log", "Groups")) else "read a/#"
    )
    told = said(who, method, hidden)
    assert told.replace("mixed", "absent").replace("billing", "absent") == said(
        who, method, missing
    )
    assert "eu/#" not in told.replace("orders/eu/#", "")


def test_who_may_know_that_it_is_there_is_told_what_would_allow_all_of_it() -> None:
    remove = topics_pb2.RemoveTopicRequest(name="mixed")
    told = said(login("operate eu/#"), "Topics/Remove", remove)
    assert "--role operate --topic 'eu/#' --topic 'us/#'" in told
    entries = queues_pb2.ListEntriesRequest(group="billing")
    told = said(login("read orders/eu/# @bill*"), "Queues/List", entries)
    assert "--role consume --topic 'orders/#' --group billing" in told


def test_a_group_behind_a_topic_is_named_to_who_may_see_it() -> None:
    cut = operations_pb2.GrowTopic(topic="orders", partitions=12, with_shards=True)
    request = operations_pb2.PlanRequest(change=operations_pb2.Change(grow_topic=cut))
    assert "billing" in said(
        login("operate orders/#", "read orders/# @billing"), "Operations/Plan", request
    )
    assert "billing" not in said(login("operate orders/#"), "Operations/Plan", request)
