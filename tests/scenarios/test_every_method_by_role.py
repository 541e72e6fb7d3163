"""Every method that is served, over the wire, by who has which role for which topics and groups.

What each role may is written down here once more, by hand. Who has a role for other topics and
groups is let at nothing of these, also in the middle of a call.
"""

import asyncio
import pkgutil
from collections.abc import AsyncIterator, Sequence
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
from dss_client.access import Permission
from dss_core.build import build_frame
from dss_core.columns import Columns
from dss_core.errors import PermissionDenied
from dssd.rpc.principal import METHOD_ROLES
from support.daemon_process import running, short_directory

for _module in pkgutil.iter_modules(dss_api.v1.__path__):
    import_module(f"dss_api.v1.{_module.name}")  # so that all descriptors are known

pytestmark = pytest.mark.asyncio(loop_scope="module")  # one daemon for all

ROLES = ("read", "produce", "consume", "operate", "admin")
ALL = (("#",), ("*",))
OTHERS = (("payments/#",), ("shipping*",))
OF_OURS = "dss_api.v1."

FREE = {"Daemon/Status", "Topics/List", "Groups/List", "Grants/List"}
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
        # Of a job that is not there.
        "Jobs/Acquire", "Jobs/Renew", "Jobs/Stage", "Jobs/Commit", "Jobs/GiveUp",
    },
}  # fmt: skip
PATIENCE_S = 20.0
TRIES_MAX = 20
"""gRPC knows nothing of how a call ended whose end crossed with a message that was being sent."""

FRAME = build_frame(
    Columns([b"x"], None, "orders/eu", None, 1), partition=0, producer_id=bytes(16), sequence=0
)
ABOUT_ORDERS: dict[str, Any] = {
    "topic": "orders",
    "name": "orders",
    "group": "billing",
    "filter": "orders/#",
    "job": "copy",
    "stream": "orders/0/0",
    "partitions": 1,
    "number": 1,
    "topic_epoch": 1,
}
ITEMS: dict[str, Sequence[dict[str, Any]]] = {
    "Groups/Create": [{"filter": "$share/billing/orders/#"}],
    "Log/Produce": [{"topic": "orders", "topic_epoch": 1, "frames": [FRAME]}],
    "Log/Publish": [{"topic": "orders", "records": [{"payload": b"x", "subject": "orders/eu"}]}],
    "Sessions/Attach": [
        {"open": {}},
        {"subscribe": {"subscription": 1, "filter": "$share/billing/orders/#"}},
    ],
    "Operations/Plan": [{"change": {"edit_topic": {"topic": "orders", "retention_ms": 10**9}}}],
    "Operations/Apply": [{"change": {"edit_topic": {"topic": "orders", "retention_ms": 10**9}}}],
    "Events/Watch": [{"after_number": 0}],
    "Jobs/Stage": [{"job": "copy", "begin": {"epoch": 1, "name": "x"}}],
    "Access/Remove": [{"name": "token:nobody", "if_exists": True}],
}


def methods() -> list[str]:
    """All of ours."""
    served = [each.strip("/") for each in METHOD_ROLES if each.startswith(f"/{OF_OURS}")]
    return sorted(each.removeprefix(OF_OURS) for each in served)


def may(role: str, method: str) -> bool:
    """Whether who has the role for all topics and groups may call it."""
    if method in BESIDE:
        return False
    needed = next((each for each, known in MORE_THAN_READ.items() if method in known), "read")
    return role == "admin" or needed in (role, "read")


class _DeniedByItemError(Exception):
    """A session is told by an item what its client may not."""


class Site:
    """A daemon with tokens, one for each role and each choice of topics."""

    def __init__(self, channel: grpc.aio.Channel, tokens: dict[str, str]) -> None:
        self.channel = channel
        self.tokens = tokens

    async def is_denied(self, who: str, method: str) -> bool:
        """Whether a call of that method, about orders and billing, is denied."""
        for _ in range(TRIES_MAX):
            try:
                await self._called(method, self.tokens[who])
            except _DeniedByItemError:
                return True
            except grpc.aio.AioRpcError as refused:
                if refused.code() is not grpc.StatusCode.INTERNAL:
                    return refused.code() is grpc.StatusCode.PERMISSION_DENIED
            else:
                return False
        raise AssertionError(f"{method} of {who} has no outcome")

    async def _called(self, method: str, token: str) -> None:
        service, name = f"{OF_OURS}{method}".split("/")
        known = descriptor_pool.Default().FindServiceByName(service).methods_by_name[name]
        request = message_factory.GetMessageClass(known.input_type)
        answer = message_factory.GetMessageClass(known.output_type).FromString
        streams = (known.client_streaming, known.server_streaming)
        kind = "_".join("stream" if each else "unary" for each in streams)
        ask = getattr(self.channel, kind)(f"/{OF_OURS}{method}", request.SerializeToString, answer)
        how = {"metadata": (("authorization", f"Bearer {token}"),), "timeout": PATIENCE_S}
        items = [request(**each) for each in ITEMS.get(method, [_about_orders(request)])]
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
                    raise _DeniedByItemError
        finally:
            call.cancel()


def _about_orders(kind: Any) -> dict[str, Any]:  # noqa: ANN401 - of any message
    named = {field.name for field in kind.DESCRIPTOR.fields}
    return {name: value for name, value in ABOUT_ORDERS.items() if name in named}


@asynccontextmanager
async def opened() -> AsyncIterator[Site]:
    with short_directory() as folder:
        listens = ("--listen", f"unix:{folder}/s", "--listen", "127.0.0.1:0,clients=tokens")
        async with running("--data-dir", f"{folder}/d", *listens) as daemon:
            local, remote = daemon.endpoints
            async with dss_client.connect(endpoint=local) as admin:
                tokens = {}
                for role in ROLES:
                    for which, (topics, groups) in {"all": ALL, "others": OTHERS}.items():
                        permission = Permission(role, topics, groups)
                        if role == "admin":
                            permission = Permission(role)
                        made = await admin.access.add_token(f"{role}-{which}", [permission])
                        tokens[f"{role}-{which}"] = made.token
                async with grpc.aio.insecure_channel(remote) as channel:
                    yield Site(channel, tokens)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site() -> AsyncIterator[Site]:
    async with opened() as made:
        yield made


async def test_the_table_here_names_methods_that_are_there() -> None:
    named = FREE.union(BESIDE, *MORE_THAN_READ.values())
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
