"""How a call to subscribe becomes a subscription: the workflow of JetStream, without I/O.

A workflow is a generator. It yields what it wants to know or to have done, is sent the answer, and
returns its verdict; an error that an action ends with is thrown into it. `carried_out` runs it over
a `Port`. Invariants: what is there is checked before it is used, in one order, wherever it was
found; nothing is created where a name was given to bind to; whatever was opened for a call that
fails is closed again, and no consumer is left behind that this call made.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, assert_never

from dss_client.jetstream.calls import SubscribeCall, checked
from dss_client.jetstream.config import ConsumerConfig, ConsumerInfo, differences
from dss_core.errors import (
    ConfigDiffers,
    ConsumerHasOtherQueue,
    ConsumerHasQueue,
    ConsumerIsBound,
    ConsumerIsPull,
    ConsumerIsPush,
    ConsumerNotFound,
    ConsumerWithoutQueue,
    FlowControlOverQueue,
    HeartbeatOverQueue,
    NoMatchingStream,
    PermissionDenied,
    SubjectMismatch,
    TimedOut,
)

LOOKUP_MAY_FAIL = (PermissionDenied, TimedOut)
"""A puller may go on without having seen the consumer, if it could not be looked up."""


@dataclass(frozen=True, slots=True)
class FindStreams:
    """Which streams have the subject; answered with their names."""

    subject: str


@dataclass(frozen=True, slots=True)
class LookUp:
    """The consumer of the name; answered by its info, or None."""

    stream: str
    name: str
    pull: bool


@dataclass(frozen=True, slots=True)
class Listen:
    """Listen where the consumer will deliver to, before it is made."""

    config: ConsumerConfig


@dataclass(frozen=True, slots=True)
class Create:
    """Make the consumer; answered by its info, or None where there is one of the name."""

    stream: str
    config: ConsumerConfig


@dataclass(frozen=True, slots=True)
class Attach:
    """Join the consumer; answered with whether nobody else was sooner."""

    call: SubscribeCall
    info: ConsumerInfo


@dataclass(frozen=True, slots=True)
class Withdraw:
    """Listen no more."""


@dataclass(frozen=True, slots=True)
class Discard:
    """Delete the consumer that was just made, unless others use it by now."""

    info: ConsumerInfo


Request = FindStreams | LookUp | Listen | Create | Attach | Withdraw | Discard


@dataclass(frozen=True, slots=True)
class Bound:
    """The verdict: subscribed."""

    info: ConsumerInfo
    created: bool
    """This call made the consumer: it is deleted when the subscription ends, unless others use
    it."""


Workflow = Generator[Request, Any, Bound]


def workflow(asked: SubscribeCall) -> Workflow:
    """Subscribe.

    Raises:
        DssError: the call, the stream or the consumer does not allow it.
    """
    call = checked(asked)
    stream = call.stream or only_stream(call.subject, (yield FindStreams(call.subject)))
    info = None
    if call.name and not call.skip_lookup:
        info = yield from _looked_up(call, stream)
    elif call.consumer:
        info = _unseen(call, stream)
    if info is not None:
        check_existing(call, info)
        return (yield from _attached(call, info))
    if call.consumer:
        raise ConsumerNotFound(consumer=call.consumer, stream=stream)
    return (yield from _created(call, stream))


def only_stream(subject: str, found: Sequence[str]) -> str:
    """The one that was found.

    Raises:
        NoMatchingStream: it is not one.
    """
    if len(found) != 1:
        what = f"it is of {', '.join(found)}" if found else "no stream has it"
        raise NoMatchingStream(subject=subject, found=what)
    return found[0]


def _looked_up(call: SubscribeCall, stream: str) -> Generator[Request, Any, ConsumerInfo | None]:
    try:
        info: ConsumerInfo | None = yield LookUp(stream, call.name, call.pull)
    except LOOKUP_MAY_FAIL:
        if not (call.pull and call.consumer):
            raise
        return _unseen(call, stream)
    return info


def _unseen(call: SubscribeCall, stream: str) -> ConsumerInfo:
    """A consumer that was not looked up: as the call describes it."""
    from datetime import UTC, datetime

    created = datetime.fromtimestamp(0, UTC)
    return ConsumerInfo(call.name, stream, call.creates(), created, push_bound=False)


def _created(call: SubscribeCall, stream: str) -> Workflow:
    config = call.creates()
    if not call.pull:
        yield Listen(config)
    try:
        info: ConsumerInfo | None = yield Create(stream, config)
    except BaseException:
        yield Withdraw()
        raise
    if info is None:
        return (yield from _after_a_race(call, stream))
    try:
        bound: bool = yield Attach(call, info)
    except BaseException:
        yield Withdraw()
        yield Discard(info)
        raise
    if not bound:
        raise ConsumerIsBound(consumer=info.name)
    return Bound(info, created=True)


def _after_a_race(call: SubscribeCall, stream: str) -> Workflow:
    """Somebody made the consumer since it was looked up."""
    yield Withdraw()
    info: ConsumerInfo | None = yield LookUp(stream, call.name, call.pull)
    if info is None:
        raise ConsumerNotFound(consumer=call.name, stream=stream)
    check_existing(call, info)
    if not call.pull and not call.queue:
        raise ConsumerIsBound(consumer=info.name)
    return (yield from _attached(call, info))


def _attached(call: SubscribeCall, info: ConsumerInfo) -> Workflow:
    try:
        bound: bool = yield Attach(call, info)
    except BaseException:
        yield Withdraw()
        raise
    if not bound:
        raise ConsumerIsBound(consumer=info.name)
    return Bound(info, created=False)


def check_existing(call: SubscribeCall, info: ConsumerInfo) -> None:
    """See that the call fits a consumer that is there.

    Raises:
        SubjectMismatch, ConsumerIsPush, ConsumerIsPull, ConsumerWithoutQueue, ConsumerIsBound,
        ConsumerHasQueue, ConsumerHasOtherQueue, FlowControlOverQueue, HeartbeatOverQueue,
        ConfigDiffers: it does not.
    """
    has, name = info.config, info.name
    _check_subjects(call, info)
    if call.pull and not has.is_pull:
        raise ConsumerIsPush(consumer=name)
    if not call.pull:
        if has.is_pull:
            raise ConsumerIsPull(consumer=name)
        _check_queue(call, info)
    if found := list(differences(call.config, has)):
        raise ConfigDiffers(consumer=name, differences="; ".join(found))


def _check_subjects(call: SubscribeCall, info: ConsumerInfo) -> None:
    has, name = info.config, info.name
    filters = has.filter_subjects or ([has.filter_subject] if has.filter_subject else [])
    asked = call.config.filter_subjects
    differs = asked is not None and sorted(asked) != sorted(filters)
    if differs or (call.subject and filters and call.subject not in filters):
        subject = ", ".join(asked) if asked and differs else call.subject
        raise SubjectMismatch(consumer=name, filter=", ".join(filters), subject=subject)


def _check_queue(call: SubscribeCall, info: ConsumerInfo) -> None:
    has, name, queue = info.config, info.name, call.queue
    if queue and not has.deliver_group:
        raise ConsumerWithoutQueue(consumer=name, queue=queue)
    if not queue and has.deliver_group:
        raise ConsumerHasQueue(consumer=name, deliver_group=has.deliver_group)
    if queue != (has.deliver_group or ""):
        raise ConsumerHasOtherQueue(consumer=name, deliver_group=has.deliver_group, queue=queue)
    if not queue and info.push_bound:
        raise ConsumerIsBound(consumer=name)
    if queue and has.flow_control:
        raise FlowControlOverQueue(consumer=name)
    if queue and has.idle_heartbeat:
        raise HeartbeatOverQueue(consumer=name)


class Port(Protocol):
    """What a workflow is carried out by."""

    async def find_streams(self, subject: str) -> tuple[str, ...]:
        """The streams that the subject meets."""

    async def look_up(self, request: LookUp) -> ConsumerInfo | None:
        """The consumer, if there is one."""

    async def listen(self, request: Listen) -> None:
        """Be where the consumer will deliver to."""

    async def create(self, request: Create) -> ConsumerInfo | None:
        """Make the consumer; None where there is one."""

    async def attach(self, request: Attach) -> bool:
        """Take part; whether nobody else was sooner."""

    async def withdraw(self) -> None:
        """Take part no more, and listen no more."""

    async def discard(self, request: Discard) -> None:
        """Delete the consumer unless others use it."""


async def carried_out(machine: Workflow, port: Port) -> Bound:
    """Run a workflow to its verdict.

    Raises:
        DssError: as the workflow, or an action, does.
    """
    try:
        request = next(machine)
        while True:
            try:
                answer = await _answer(request, port)
            except BaseException as error:  # noqa: BLE001 - the workflow decides what becomes of it
                request = machine.throw(error)
            else:
                request = machine.send(answer)
    except StopIteration as ended:
        verdict: Bound = ended.value
        return verdict


async def _answer(request: Request, port: Port) -> Any:  # noqa: ANN401 - as each request says
    match request:
        case FindStreams(subject):
            return await port.find_streams(subject)
        case LookUp():
            return await port.look_up(request)
        case Listen():
            await port.listen(request)
        case Create():
            return await port.create(request)
        case Attach():
            return await port.attach(request)
        case Withdraw():
            await port.withdraw()
        case Discard():
            await port.discard(request)
        case _:
            assert_never(request)
    return None
