"""The demands of each call: roles, topics and groups, taken from its message.

Invariant: every method that is served stands in exactly one of these tables. A method in none of
them demands everything, so a forgotten one is denied to limited callers. A name that does not exist
gives a demand for that name, so a caller whose permissions do not cover the name does not learn
whether it exists.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from dss_api.v1 import operations_pb2
from dss_core.errors import DssError, GroupAmbiguous
from dss_core.filters import SubscriptionFilter, TopicFilter, check_subject
from dss_core.ids import StreamName
from dssd.access.permissions import Demand, Role, everywhere
from dssd.leaders.declarations import SHARD
from dssd.schedules.definitions import arguments_of
from dssd.store.rows import GroupRow, OperationRow
from dssd.store.schedule_rows import ScheduleRow
from dssd.topics.catalogue import Topic


class Topics(Protocol):
    """The catalogue, as far as it is asked here."""

    def find(self, name: str) -> Topic | None:
        """The topic of that name."""


class Groups(Protocol):
    """The groups, as far as they are asked here."""

    def find(self, text: str) -> GroupRow:
        """The group that an operator names."""

    def groups(self) -> Sequence[GroupRow]:
        """All of them."""


class Jobs(Protocol):
    """The bulk jobs, as far as they are asked here."""

    def topics_of(self, name: str) -> tuple[str, str] | None:
        """Source and target of a job, each perhaps empty; None where there is no such job."""

    def dead_letters_of(self, name: str) -> str:
        """The group whose dead letters a job reads; empty: none, or there is no such job."""


class Operations(Protocol):
    """The operations, as far as they are asked here."""

    def get(self, number: int) -> OperationRow:
        """One of them."""


class Schedules(Protocol):
    """The schedules, as far as they are asked here."""

    def find(self, name: str) -> ScheduleRow | None:
        """The schedule of that name."""


class Known:
    """What there is, for the demands of a call."""

    def __init__(
        self,
        topics: Topics,
        groups: Groups,
        operations: Operations,
        jobs: Jobs,
        schedules: Schedules,
    ) -> None:
        self._schedules = schedules
        self._topics = topics
        self._groups = groups
        self._operations = operations
        self.topics_of_job = jobs.topics_of
        self.dead_letters_of_job = jobs.dead_letters_of

    def patterns(self, topic: str) -> tuple[TopicFilter, ...]:
        """The subjects of a topic; if it does not exist, those that it would have.

        An internal topic has none: the demand is its name, which no wildcard covers.
        """
        found = self._topics.find(topic)
        return (found.patterns if found is not None else ()) or _own(topic)

    def filter_of(self, group: str) -> tuple[TopicFilter, ...]:
        """The filter of a group; nothing if it does not exist."""
        try:
            return (TopicFilter.parse(self._groups.find(group).filter),)
        except DssError:
            return ()

    def states_of(self, group: str, role: Role) -> Iterable[Demand]:
        """The demands on the state of a group; where several have the name, on each of them, for
        the answer names them all."""
        name = group_name(group)
        for filters in self._meant_by(group):
            yield Demand(role, filters, name, in_part=role is Role.READ, by_group=True)

    def entries_of(self, group: str) -> Iterable[Demand]:
        """The same for entries of queues, which are records that failed."""
        name = group_name(group)
        return [Demand(Role.CONSUME, filters, name) for filters in self._meant_by(group)]

    def _meant_by(self, group: str) -> Sequence[tuple[TopicFilter, ...]]:
        try:
            return [(TopicFilter.parse(self._groups.find(group).filter),)]
        except GroupAmbiguous:
            named = [each for each in self._groups.groups() if each.name == group_name(group)]
            assert named, "several groups have the name"
            return [(TopicFilter.parse(each.filter),) for each in named]
        except DssError:
            return [()]

    def sharded_readers(self, topic: str) -> set[str]:
        """The groups that read a topic and have shards, as operators name them."""
        patterns = self.patterns(topic)
        return {
            group.full_name
            for group in self._groups.groups()
            if group.allocation == SHARD
            and any(TopicFilter.parse(group.filter).overlaps(each) for each in patterns)
        }

    def arguments_of(self, schedule: str) -> Mapping[str, str]:
        """The arguments of its task; nothing if it does not exist."""
        found = self._schedules.find(schedule)
        return {} if found is None else arguments_of(found)

    def is_of(self, number: int, principal: str) -> bool:
        """Whether the operation of that number is one of this principal."""
        try:
            return self._operations.get(number).principal == principal
        except DssError:
            return False


Asked = Callable[[Any, Known], Iterable[Demand]]

FREE: frozenset[str] = frozenset(
    {
        "/dss_api.v1.Daemon/Status",
        "/dss_api.v1.Topics/List",
        "/dss_api.v1.Groups/List",
        "/grpc.health.v1.Health/Check",
        "/grpc.health.v1.Health/Watch",
        "/grpc.health.v1.Health/List",
    }
)
"""Methods for any caller with a role. Answers leave out what others own (`dssd.rpc.permits`)."""

BESIDE: frozenset[str] = frozenset(
    {
        "/dss_api.v1.Log/Runs",
    }
)
"""Methods for local processes, which see the same files."""

ALL_OF_THEM: Mapping[str, Role] = {
    "/dss_api.v1.Daemon/Findings": Role.READ,
    "/dss_api.v1.Events/List": Role.READ,
    "/dss_api.v1.Events/Watch": Role.READ,
    "/dss_api.v1.Operations/List": Role.READ,
    "/dss_api.v1.Watch/Watch": Role.READ,
    "/dss_api.v1.Schedules/List": Role.READ,
    "/dss_api.v1.Schedules/Describe": Role.READ,
    "/dss_api.v1.Schedules/Preview": Role.READ,
    "/dss_api.v1.Schedules/Trigger": Role.OPERATE,
    "/dss_api.v1.Schedules/Tasks": Role.READ,
    "/dss_api.v1.Jobs/List": Role.READ,
    "/dss_api.v1.Sessions/List": Role.READ,
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": Role.READ,
    "/dss_api.v1.Access/List": Role.ADMIN,
    "/dss_api.v1.Access/Put": Role.ADMIN,
    "/dss_api.v1.Access/Rotate": Role.ADMIN,
    "/dss_api.v1.Access/Remove": Role.ADMIN,
    "/dss_api.v1.Access/Confirm": Role.ADMIN,
    "/dss_api.v1.Backups/Create": Role.ADMIN,
    "/dss_api.v1.Backups/Confirm": Role.ADMIN,
}
"""Methods that concern all topics and groups together."""


def _own(topic: str) -> tuple[TopicFilter, ...]:
    return (TopicFilter.parse(f"{topic}/#"),)


def _sees_topic(request: Any, known: Known) -> Iterable[Demand]:  # noqa: ANN401 - any message
    yield Demand(Role.READ, known.patterns(request.name), in_part=True)


def _locates(request: Any, known: Known) -> Iterable[Demand]:  # noqa: ANN401
    if request.dead_letters:
        yield from known.entries_of(request.dead_letters)
    yield from _sees_topic(request, known)


def _makes_topic(request: Any, _: Known) -> Iterable[Demand]:  # noqa: ANN401
    patterns = tuple(map(TopicFilter.parse, request.patterns)) or _own(request.name)
    yield Demand(Role.OPERATE, patterns)


def _changes_topic(request: Any, known: Known) -> Iterable[Demand]:  # noqa: ANN401
    yield Demand(Role.OPERATE, known.patterns(request.name))


def group_name(text: str) -> str:
    """The name in what an operator writes of a group: NAME, NAME@FILTER, ``$share/NAME/FILTER``.

    Raises:
        IllegalName, IllegalFilter, QueueWithoutGroup: it is none of these.
    """
    if text.startswith("$"):
        return SubscriptionFilter.parse(text).group or ""
    return text.partition("@")[0]


def _in_group(role: Role) -> Asked:
    def asked(request: Any, known: Known) -> Iterable[Demand]:  # noqa: ANN401
        if request.group:
            yield from known.states_of(request.group, role)
        else:
            yield everywhere(role)

    return asked


def _lists_grants(request: Any, known: Known) -> Iterable[Demand]:  # noqa: ANN401
    """Of a group; the grants of all are trimmed (`dssd.rpc.permits`)."""
    if request.group:
        yield from known.states_of(request.group, Role.READ)


def _asks_why(request: Any, known: Known) -> Iterable[Demand]:  # noqa: ANN401
    """A record of the group, or one of a topic that the caller may know of."""
    yield from _in_group(Role.READ)(request, known)
    topic = StreamName.parse(request.stream).topic if request.stream else request.topic
    if topic:
        patterns, read = known.patterns(topic), known.filter_of(request.group)
        if not any(own.overlaps(each) for own in read for each in patterns):
            yield Demand(Role.READ, patterns, in_part=True)


def _makes_group(request: Any, _: Known) -> Iterable[Demand]:  # noqa: ANN401
    parsed = SubscriptionFilter.parse(request.filter)
    yield Demand(Role.OPERATE, (parsed.filter,), parsed.group)


def _reads_queues(request: Any, known: Known) -> Iterable[Demand]:  # noqa: ANN401
    yield from known.entries_of(request.group)


def _produces(request: Any, known: Known) -> Iterable[Demand]:  # noqa: ANN401
    """Subjects are checked frame by frame (`dssd.rpc.permits.SubjectRule`)."""
    if request.topic:  # where it begins, and where it changes
        yield Demand(Role.PRODUCE, known.patterns(request.topic), in_part=True)


def _publishes(request: Any, known: Known) -> Iterable[Demand]:  # noqa: ANN401
    yield Demand(Role.PRODUCE, known.patterns(request.topic), in_part=True)
    yield from map(demand_of_subject, {each.subject or request.topic for each in request.records})


def demand_of_subject(subject: str) -> Demand:
    """What a record of that subject asks for.

    Raises:
        IllegalSubject: it is none.
    """
    check_subject(subject)
    return Demand(Role.PRODUCE, (TopicFilter.parse(subject),))


def _reads_records(request: Any, known: Known) -> Iterable[Demand]:  # noqa: ANN401
    """By a filter; without one, all records of a stream, or the group's dead letters of it."""
    patterns = known.patterns(StreamName.parse(request.stream).topic) if request.stream else ()
    if request.dead_letters:
        yield from known.entries_of(request.dead_letters)
    elif patterns and not request.filter:
        yield Demand(Role.CONSUME, patterns)
    else:
        yield Demand(Role.CONSUME, (TopicFilter.parse(request.filter),))
    if patterns:  # a caller that may know of the topic learns which streams exist
        yield Demand(Role.READ, patterns, in_part=True)


def _attaches(message: Any, _: Known) -> Iterable[Demand]:  # noqa: ANN401
    """Sessions: each subscription, on each connection, is a demand."""
    if message.WhichOneof("item") == "subscribe":
        parsed = SubscriptionFilter.parse(message.subscribe.filter)
        yield Demand(Role.CONSUME, (parsed.filter,), parsed.group)


def _changes(request: Any, known: Known) -> Iterable[Demand]:  # noqa: ANN401
    yield from demands_of_change(request.change, known)


def demands_of_change(asked: operations_pb2.Change, known: Known) -> Iterable[Demand]:
    """What a change asks for: its group, its topic, or all of them."""
    kind = asked.WhichOneof("change")
    change: Any = getattr(asked, kind) if kind else asked
    fields = {field.name for field in change.DESCRIPTOR.fields}
    if kind == "create_job":
        yield from _demands_of_job(change, known)
    elif kind in _RUNS_TASKS:
        kept = known.arguments_of(change.schedule) if "schedule" in fields else {}
        given = change.arguments if "arguments" in fields else {}
        yield from demands_of_task({**kept, **given}, known)
    elif "group" in fields:
        yield from known.states_of(change.group, Role.OPERATE)
    elif "topic" in fields:
        yield Demand(Role.OPERATE, known.patterns(change.topic))
        if kind == "grow_topic":
            yield from _demands_of_cut_groups(change, known)
    else:
        yield everywhere(Role.OPERATE)


def _demands_of_cut_groups(growth: operations_pb2.GrowTopic, known: Known) -> Iterable[Demand]:
    """New shard counts demand to operate the groups: the named ones, or all that may be
    affected."""
    groups = {each.group for each in growth.shard_counts}
    if growth.with_shards and not groups:
        groups = known.sharded_readers(growth.topic)
    for group in sorted(groups):
        yield from known.states_of(group, Role.OPERATE)


_RUNS_TASKS = ("create_schedule", "edit_schedule", "resume_schedule", "run_task")
"""The caller of these is responsible for the runs that follow."""


def demands_of_task(arguments: Mapping[str, str], known: Known) -> Iterable[Demand]:
    """What a run of a task asks for."""
    yield everywhere(Role.OPERATE)
    if topic := arguments.get("topic"):  # whose records it exports
        yield Demand(Role.CONSUME, known.patterns(topic))


def _demands_of_job(job: operations_pb2.CreateJob, known: Known) -> Iterable[Demand]:
    yield everywhere(Role.OPERATE)
    yield from demands_of_data(job.source, job.target, job.dead_letters, known)


def demands_of_data(source: str, target: str, dead_letters: str, known: Known) -> Iterable[Demand]:
    """A job reads its source, or a group's dead letters of it, and writes its target."""
    if dead_letters:
        yield from known.entries_of(dead_letters)
    elif source:
        yield Demand(Role.CONSUME, known.patterns(source))
    if target:
        yield Demand(Role.PRODUCE, known.patterns(target))


def _sees_job(request: Any, known: Known) -> Iterable[Demand]:  # noqa: ANN401
    topics = [each for each in known.topics_of_job(request.job) or () if each]
    for topic in topics:
        yield Demand(Role.READ, known.patterns(topic), in_part=True)
    if not topics:
        yield everywhere(Role.READ)


def _drives(request: Any, known: Known) -> Iterable[Demand]:  # noqa: ANN401
    """A driver reads the source of its job, and writes the target."""
    if not request.job:  # a further item of a call
        return
    topics = known.topics_of_job(request.job)
    source, target = topics or ("", "")
    dead_letters = known.dead_letters_of_job(request.job)
    yield from demands_of_data(source, target, dead_letters, known)
    if topics is None:  # only a caller that may see all learns that it does not exist
        yield everywhere(Role.READ)
    elif not (source or target):
        yield everywhere(Role.OPERATE)


DEMANDS: Mapping[str, Asked] = {
    "/dss_api.v1.Jobs/Get": _sees_job,
    "/dss_api.v1.Jobs/ListChunks": _sees_job,
    "/dss_api.v1.Jobs/Acquire": _drives,
    "/dss_api.v1.Jobs/Renew": _drives,
    "/dss_api.v1.Jobs/Stage": _drives,
    "/dss_api.v1.Jobs/Commit": _drives,
    "/dss_api.v1.Jobs/GiveUp": _drives,
    "/dss_api.v1.Topics/Create": _makes_topic,
    "/dss_api.v1.Topics/Describe": _sees_topic,
    "/dss_api.v1.Topics/Locate": _locates,
    "/dss_api.v1.Topics/Remove": _changes_topic,
    "/dss_api.v1.Groups/Create": _makes_group,
    "/dss_api.v1.Groups/Describe": _in_group(Role.READ),
    "/dss_api.v1.Groups/Remove": _in_group(Role.OPERATE),
    "/dss_api.v1.Groups/Offsets": _in_group(Role.READ),
    "/dss_api.v1.Groups/Why": _asks_why,
    "/dss_api.v1.Groups/Stuck": _in_group(Role.READ),
    "/dss_api.v1.Groups/Shards": _in_group(Role.READ),
    "/dss_api.v1.Groups/Verify": _in_group(Role.READ),
    "/dss_api.v1.Grants/List": _lists_grants,
    "/dss_api.v1.Queues/List": _reads_queues,
    "/dss_api.v1.Queues/Errors": _reads_queues,
    "/dss_api.v1.Queues/Keys": _reads_queues,
    "/dss_api.v1.Operations/Plan": _changes,
    "/dss_api.v1.Operations/Apply": _changes,
    "/dss_api.v1.Log/Produce": _produces,
    "/dss_api.v1.Log/Publish": _publishes,
    "/dss_api.v1.Log/Read": _reads_records,
    "/dss_api.v1.Sessions/Attach": _attaches,
}

OWN_OPERATIONS: Mapping[str, Role] = {
    "/dss_api.v1.Operations/Get": Role.READ,
    "/dss_api.v1.Operations/Watch": Role.READ,
    "/dss_api.v1.Operations/Cancel": Role.OPERATE,
}
"""For the caller's own operations; another's demand all topics and groups."""


def demands_of(method: str, request: Any, principal: str, known: Known) -> Iterable[Demand]:  # noqa: ANN401
    """What a message of a call asks for.

    Raises:
        DssError: it names something in a form that nothing has.
    """
    if method in FREE:
        return ()
    if method in DEMANDS:
        return DEMANDS[method](request, known)
    if method in OWN_OPERATIONS and known.is_of(request.number, principal):
        return (Demand(OWN_OPERATIONS[method]),)
    return (everywhere(OWN_OPERATIONS.get(method) or ALL_OF_THEM.get(method, Role.ADMIN)),)
