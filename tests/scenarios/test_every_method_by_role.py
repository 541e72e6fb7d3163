"""Every method that is served, over the wire, by who has which role for which topics and groups.

What each role may is written down here once more, by hand. Who has a role for other topics and
groups is let at nothing of these, also in the middle of a call. A denial names the permission that
would do, and says the same of what is there and of what is not.
"""

import asyncio
import pkgutil
import shlex
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from importlib import import_module
from typing import Any

import grpc
import grpc.aio
import pytest
import pytest_asyncio
from google.protobuf import descriptor_pool, message_factory

import dss_api.v1
import dss_client
from dss_api.v1 import types_pb2
from dss_client._connection import ERROR_METADATA_KEY, error_from_wire
from dss_client.access import Permission
from dss_client.changes import CreateJob
from dss_core.build import build_frame
from dss_core.columns import Columns
from dss_core.errors import DssError, PermissionDenied
from dssd.rpc.principal import METHOD_ROLES
from support.daemon_process import running, short_directory

for _module in pkgutil.iter_modules(dss_api.v1.__path__):
    import_module(f"dss_api.v1.{_module.name}")  # so that all descriptors are known

pytestmark = pytest.mark.asyncio(loop_scope="module")  # one daemon for all

ROLES = ("read", "produce", "consume", "operate", "admin")
ALL = (("#",), ("*",))
OTHERS = (("payments/#",), ("shipping*",))
OF_OURS = "dss_api.v1."

FREE = {"Daemon/Status", "Topics/List", "Groups/List"}
BESIDE = {"Log/Runs"}
MORE_THAN_READ = {
    "produce": {"Log/Produce", "Log/Publish"},
    "consume": {"Log/Read", "Sessions/Attach", "Queues/List", "Queues/Errors", "Queues/Keys"},
    "operate": {
        "Topics/Create", "Topics/Remove", "Groups/Create", "Groups/Remove", "Operations/Plan",
        "Operations/Apply", "Operations/Cancel", "Schedules/Trigger",
    },
    "admin": {
        "Access/List", "Access/Put", "Access/Rotate", "Access/Remove", "Access/Confirm",
        "Backups/Create", "Backups/Confirm",
    },
}  # fmt: skip
DRIVING = {f"Jobs/{each}" for each in ("Acquire", "Renew", "Stage", "Commit", "GiveUp")}
"""Of a job that is not there, which is told to drivers that may see everything."""
PATIENCE_S = 20.0
TRIES_MAX = 20
"""gRPC knows nothing of how a call ended whose end crossed with a message that was being sent."""

PERMISSIONS_TRIED_MAX = 4
"""A call that makes a job takes three."""

Items = Mapping[str, Sequence[dict[str, Any]]]


class Names:
    """What calls are about."""

    def __init__(self, topic: str, group: str, job: str) -> None:
        self.names = (topic, group, job)
        self.usual: dict[str, Any] = {
            "topic": topic,
            "name": topic,
            "group": group,
            "filter": f"{topic}/#",
            "job": job,
            "stream": f"{topic}/0/0",
            "partitions": 1,
            "number": 1,
            "topic_epoch": 1,
        }
        subject, shared = f"{topic}/eu", f"$share/{group}/{topic}/#"
        frame = build_frame(
            Columns([b"x"], None, subject, None, 1), partition=0, producer_id=bytes(16), sequence=0
        )
        edit = {"change": {"edit_topic": {"topic": topic, "retention_ms": 10**9}}}
        self.items: Items = {
            "Groups/Create": [{"filter": shared}],
            "Log/Produce": [{"topic": topic, "topic_epoch": 1, "frames": [frame]}],
            "Log/Publish": [{"topic": topic, "records": [{"payload": b"x", "subject": subject}]}],
            "Sessions/Attach": [
                {"open": {"filters": [shared]}},
                {"subscribe": {"subscription": 1, "filter": shared}},
            ],
            "Operations/Plan": [edit],
            "Operations/Apply": [edit],
            "Events/Watch": [{"after_number": 0}],
            "Jobs/Stage": [{"job": job, "begin": {"epoch": 1, "name": "x"}}],
            "Access/Remove": [{"name": "token:nobody", "if_exists": True}],
        }

    def messages(self, method: str, kind: Any) -> list[Any]:  # noqa: ANN401 - of any message
        """Those of a call, in order."""
        named = {field.name for field in kind.DESCRIPTOR.fields}
        usual = {name: value for name, value in self.usual.items() if name in named}
        return [kind(**each) for each in self.items.get(method, [usual])]

    def left_out(self, text: str) -> str:
        """The text without these names."""
        for each in self.names:
            text = text.replace(each, "NAME")
        return text


ORDERS = Names("orders", "billing", "copy")
HIDDEN, MISSING = Names("vault", "auditors", "haul"), Names("attic", "nobodys", "cart")
"""The first are there, and their subjects do not begin with their names; the others are not."""


def methods() -> list[str]:
    """All of ours."""
    served = [each.strip("/") for each in METHOD_ROLES if each.startswith(f"/{OF_OURS}")]
    return sorted(each.removeprefix(OF_OURS) for each in served)


def may(role: str, method: str) -> bool:
    """Whether who has the role for all topics and groups may call it."""
    if method in BESIDE:
        return False
    if method in DRIVING:
        return role in ("produce", "consume", "admin")
    needed = next((each for each, known in MORE_THAN_READ.items() if method in known), "read")
    return role == "admin" or needed in (role, "read")


class _DeniedByItemError(Exception):
    """A session is told by an item what its client may not."""


class Site:
    """A daemon with tokens, one for each role and each choice of topics."""

    def __init__(
        self, channel: grpc.aio.Channel, tokens: dict[str, str], admin: dss_client.Client
    ) -> None:
        self.channel = channel
        self.tokens = tokens
        self.admin = admin

    async def is_denied(self, who: str, method: str) -> bool:
        """Whether a call of that method, about orders and billing, is denied."""
        return await self.denial(who, method, ORDERS) is not None

    async def denial(self, who: str, method: str, names: Names) -> DssError | None:
        """What a denied call is told; None where it is not denied."""
        for _ in range(TRIES_MAX):
            try:
                await self._called(method, self.tokens[who], names)
            except _DeniedByItemError as denied:
                (error,) = denied.args
                return error_from_wire(error)
            except grpc.aio.AioRpcError as refused:
                if refused.code() is grpc.StatusCode.PERMISSION_DENIED:
                    return _condition_of(refused)
                if refused.code() is not grpc.StatusCode.INTERNAL:
                    return None
            else:
                return None
        raise AssertionError(f"{method} of {who} has no outcome")

    async def _called(self, method: str, token: str, names: Names) -> None:
        service, name = f"{OF_OURS}{method}".split("/")
        known = descriptor_pool.Default().FindServiceByName(service).methods_by_name[name]
        request = message_factory.GetMessageClass(known.input_type)
        answer = message_factory.GetMessageClass(known.output_type).FromString
        streams = (known.client_streaming, known.server_streaming)
        kind = "_".join("stream" if each else "unary" for each in streams)
        ask = getattr(self.channel, kind)(f"/{OF_OURS}{method}", request.SerializeToString, answer)
        how = {"metadata": (("authorization", f"Bearer {token}"),), "timeout": PATIENCE_S}
        items = names.messages(method, request)
        if not known.server_streaming:
            await ask(items[0], **how)
            return
        call = ask(**how) if known.client_streaming else ask(items[0], **how)
        try:
            if known.client_streaming:
                with suppress(asyncio.InvalidStateError):  # it is over: reading says why
                    for item in items:
                        await call.write(item)
            for _ in items:
                reply = await call.read()
                if reply is grpc.aio.EOF:
                    return
                if method == "Sessions/Attach" and reply.error.error.code == PermissionDenied.code:
                    raise _DeniedByItemError(reply.error.error)
        finally:
            call.cancel()


def _condition_of(refused: grpc.aio.AioRpcError) -> DssError:
    for key, value in refused.trailing_metadata() or ():
        if key == ERROR_METADATA_KEY and isinstance(value, bytes):
            return error_from_wire(types_pb2.Error.FromString(value))
    raise AssertionError("a denial without a condition")


@asynccontextmanager
async def opened() -> AsyncIterator[Site]:
    with short_directory() as folder:
        listens = ("--listen", f"unix:{folder}/s", "--listen", "127.0.0.1:0,clients=tokens")
        async with running("--data-dir", f"{folder}/d", *listens) as daemon:
            local, remote = daemon.endpoints
            async with dss_client.connect(endpoint=local) as admin:
                await admin.topics.create("vault", partitions=1, patterns=["gold/#"])
                await admin.groups.create("$share/auditors/gold/#")
                job = CreateJob("haul", "replay", source="vault", target="vault", allow_loop=True)
                await admin.operations.apply(await admin.operations.plan(job), reason="a test")
                tokens = {}
                for role in ROLES:
                    for which, (topics, groups) in {"all": ALL, "others": OTHERS}.items():
                        permission = Permission(role, topics, groups)
                        if role == "admin":
                            permission = Permission(role)
                        made = await admin.access.add_token(f"{role}-{which}", [permission])
                        tokens[f"{role}-{which}"] = made.token
                async with grpc.aio.insecure_channel(remote) as channel:
                    yield Site(channel, tokens, admin)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site() -> AsyncIterator[Site]:
    async with opened() as made:
        yield made


async def test_the_table_here_names_methods_that_are_there() -> None:
    named = FREE.union(BESIDE, DRIVING, *MORE_THAN_READ.values())
    assert named <= set(methods())


@pytest.mark.parametrize("role", ROLES)
async def test_who_has_a_role_for_all_may_what_the_role_says(site: Site, role: str) -> None:
    wrong = {
        method
        for method in methods()
        if await site.is_denied(f"{role}-all", method) == may(role, method)
    }
    assert not wrong


@pytest.mark.parametrize("role", [each for each in ROLES if each != "admin"])
async def test_who_has_a_role_for_other_topics_and_groups_is_let_at_none_of_these(
    site: Site, role: str
) -> None:
    let = {method for method in methods() if not await site.is_denied(f"{role}-others", method)}
    assert let == FREE


@pytest.mark.parametrize("role", [each for each in ROLES if each != "admin"])
async def test_a_denial_says_the_same_of_what_is_there_and_of_what_is_not(
    site: Site, role: str
) -> None:
    for method in methods():
        hidden = await site.denial(f"{role}-others", method, HIDDEN)
        missing = await site.denial(f"{role}-others", method, MISSING)
        said = [
            None if each is None else names.left_out(f"{each} {each.hint_text}")
            for each, names in ((hidden, HIDDEN), (missing, MISSING))
        ]
        assert said[0] == said[1], method
        assert "gold" not in str(said), method


async def test_what_a_denial_says_would_allow_it_allows_it(site: Site) -> None:
    nothing_here = Permission("read", ("payments/#",))
    site.tokens["seeker"] = (await site.admin.access.add_token("seeker", [nothing_here])).token
    for method in methods():
        if method in BESIDE:
            continue
        await site.admin.access.edit("token:seeker", [nothing_here])
        for _ in range(PERMISSIONS_TRIED_MAX):
            denied = await site.denial("seeker", method, ORDERS)
            if denied is None:
                break
            await site.admin.access.allow("token:seeker", [_named_by(denied)])
        else:
            raise AssertionError(f"{method} is denied with all that its denials named: {denied}")


def _named_by(denied: DssError) -> Permission:
    """The permission of the command in a hint."""
    words = shlex.split(denied.hint_text.rstrip(".").partition(": ")[2])
    assert words[:4] == ["dssctl", "principals", "allow", "token:seeker"], denied.hint_text
    said = list(zip(words[4::2], words[5::2], strict=True))
    options = {name: tuple(value for each, value in said if each == name) for name, _ in said}
    (role,) = options["--role"]
    assert role == denied.fields["role"]
    return Permission(role, options.get("--topic", ()), options.get("--group", ()))
