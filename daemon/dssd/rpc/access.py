"""The servicer of `Access`: decodes, asks, encodes. No answer holds a credential."""

from itertools import islice
from typing import Any

import grpc.aio

from dss_api.v1 import access_pb2, access_pb2_grpc
from dss_core.errors import PrincipalNotFound
from dssd.access.access import Access, NewPrincipal
from dssd.access.permissions import is_suspended, permission_of, read_stored
from dssd.rpc.audited_calls import note_unchanged
from dssd.rpc.principal import principal_of
from dssd.store.access_rows import PrincipalRow

PRINCIPALS_LISTED_MAX = 500
"""In one answer: each has 4 KiB of filters at most, but seldom more than 200 bytes."""


Context = grpc.aio.ServicerContext[Any, Any]


class AccessServicer(access_pb2_grpc.AccessServicer):
    """Serves administrators."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def List(
        self, request: access_pb2.ListPrincipalsRequest, context: Context
    ) -> access_pb2.ListPrincipalsReply:
        """A page of all principals, by name."""
        after = (row for row in self._access.rows() if row.name > request.after_name)
        page = list(islice(after, PRINCIPALS_LISTED_MAX + 1))
        return access_pb2.ListPrincipalsReply(
            principals=map(principal_message, page[:PRINCIPALS_LISTED_MAX]),
            more=len(page) > PRINCIPALS_LISTED_MAX,
        )

    async def Put(
        self, request: access_pb2.PutPrincipalRequest, context: Context
    ) -> access_pb2.Principal:
        """Add or change one."""
        asked = NewPrincipal(
            name=request.name,
            permissions=tuple(
                permission_of(each.role, each.topics, each.groups) for each in request.permissions
            ),
            secret=request.token_sha256,
            expires_at_ms=request.expires_at_ms if request.HasField("expires_at_ms") else None,
            by=principal_of(context).name,
            replaces=request.replace,
            adds=request.add,
        )
        return principal_message(await self._access.put(asked))

    async def Rotate(
        self, request: access_pb2.RotateTokenRequest, context: Context
    ) -> access_pb2.Principal:
        """Give one another token."""
        rotated = self._access.rotate(request.name, request.token_sha256, request.both_for_ms)
        return principal_message(await rotated)

    async def Confirm(
        self, request: access_pb2.ConfirmPrincipalsRequest, context: Context
    ) -> access_pb2.ConfirmPrincipalsReply:
        """Admit principals again that a restore suspended."""
        rows = await self._access.confirm(frozenset(request.names))
        if not rows:
            note_unchanged()
        return access_pb2.ConfirmPrincipalsReply(principals=map(principal_message, rows))

    async def Remove(
        self, request: access_pb2.RemovePrincipalRequest, context: Context
    ) -> access_pb2.RemovePrincipalReply:
        """Remove one."""
        try:
            await self._access.remove(request.name)
        except PrincipalNotFound:
            if not request.if_exists:
                raise
            note_unchanged()
            return access_pb2.RemovePrincipalReply(removed=False)
        return access_pb2.RemovePrincipalReply(removed=True)


def principal_message(row: PrincipalRow) -> access_pb2.Principal:
    """A principal on the wire."""
    return access_pb2.Principal(
        name=row.name,
        permissions=[
            access_pb2.Permission(
                role=each.role, topics=[own.text for own in each.topics], groups=each.groups
            )
            for each in read_stored(row.permissions)
        ],
        expires_at_ms=row.expires_at_ms,
        older_token_until_ms=row.older_until_ms or None,
        created_at_ms=row.created_at_ms,
        created_by=row.created_by,
        suspended=is_suspended(row.permissions),
    )
