"""Groups and their grants: create, list, describe, remove.

Invariant: values in, frozen values out; no wire message leaves this module.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from dss_api.values import decoded, number_of
from dss_client._features import check_knows, needed_for_group
from dss_client._spans import span_ms, spans_ms
from dss_client._start_point import Start, start_to_wire
from dss_client.group_values import Grant, Group, ShardedGroup
from dss_client.limits import CALL_TIMEOUT_S
from dss_core.errors import IllegalArgument
from dss_core.lane import METADATA

if TYPE_CHECKING:
    from dss_client._connection import Connection
    from dss_client.answers import GroupDescription, StreamSums, Stuck, WhyAnswer
    from dss_client.offsets import GroupOffsets

GROUPS_PAGE = 500
"""Groups in one answer of a list: some 200 KiB."""


class Groups:
    """Administration of groups; reached as ``client.groups``."""

    def __init__(self, connection: "Connection") -> None:
        self._connection = connection

    async def create(
        self,
        filter: str,
        *,
        start: Start = None,
        ack_wait: float | None = None,
        if_not_exists: bool = False,
        protocol: str | None = None,
        on_damage: str | None = None,
        max_deliver: int | None = None,
        backoff: Sequence[float] = (),
        queue_records: int | None = None,
        queue_bytes: int | None = None,
        ordered: bool | None = None,
        on_dead_letter: str | None = None,
        keyless: str | None = None,
        allocation: str | None = None,
        shards: int | None = None,
        metadata: str = "",
        unused: float | None = None,
    ) -> Group:
        """Declare the group of ``$share/G/F`` or ``$queue/G/F``; ``ack_wait`` is in seconds.

        ``protocol`` is ``borrow``, the default, or ``lease``. ``on_damage`` is ``pass``, the
        default: confirmed damaged records are reported and skipped; or ``stall``: delivery stops
        there. With ``max_deliver`` a record that fails waits in a retry queue, and after so many
        attempts it is among the dead letters; without, it comes again for ever. ``backoff`` has the
        seconds after each failure; ``queue_records`` and ``queue_bytes`` bound what the queues of a
        stream hold.

        An ``ordered`` group, which has ``max_deliver`` and reads one topic, hands out records of a
        key one at a time and in order, also through retries: one that fails holds up its own key.
        Once it is dead, later ones wait with it (``on_dead_letter="block"``, the default) or go on
        (``skip``). Records without a key come without an order, or with ``keyless="dead"`` are dead
        letters at once. It is shared out by ``shards``, or with ``allocation="sticky"`` by streams.

        ``metadata``, a text of at most 4 KiB, is kept for whoever made the group. It is removed
        once no client has subscribed to it for ``unused`` seconds, if that is given.

        Raises:
            GroupExists, GroupExistsOtherwise: it is there, or with another setting.
            GroupOfAnotherKind, StartConflict: it is a queue and this is none, or began elsewhere.
            IllegalArgument, ShardCountUnfit, IllegalFilter, IllegalTime: a value breaks its rule.
            QueueWithoutGroup: a queue has a name.
            OrderNeedsOneTopic: it cannot be ordered.
            DaemonKnowsNoQueues, DaemonKnowsNoOrder, DaemonKnowsNoMetadata, DaemonKnowsNoShards: it
                is older.
        """
        from dss_api.v1 import groups_pb2

        spans = _spans(ack_wait, backoff, unused)
        order = {"on_dead_letter": on_dead_letter, "keyless": keyless, "allocation": allocation}
        try:
            request = groups_pb2.CreateGroupRequest(
                filter=filter, start=start_to_wire(start), if_not_exists=if_not_exists,
                max_deliver=max_deliver, queue_records=queue_records, queue_bytes=queue_bytes,
                ordered=ordered, shards=shards, metadata=metadata, **spans,
                **_numbers(protocol=protocol, on_damage=on_damage, **order),
            )  # fmt: skip
        except (TypeError, ValueError, OverflowError) as problem:
            # What protobuf says of a value that does not fit its field.
            raise IllegalArgument(argument="this group", rule=str(problem)) from problem
        await check_knows(self._connection, needed_for_group(request))
        reply = await self._connection.change(self._connection.groups.Create, request)
        return decoded(reply, Group)

    async def list(
        self, *, all: bool = False, filter: str = "", sort: str = ""
    ) -> tuple[Group, ...]:
        """The groups, asked for page by page.

        Args:
            all: private subscriptions too.
            filter: conditions joined by commas, ``lag>1000,state=stalled``.
            sort: a field, the greatest first, or texts from a to z; ``-`` before it turns it
                round. By name where none is given.

        Raises:
            FilterUnreadable, OrderUnreadable: the filter or the order breaks the grammar.
        """
        from dss_api.v1 import groups_pb2

        request = groups_pb2.ListGroupsRequest(
            all=all, filter=filter, sort=sort, page_size=GROUPS_PAGE
        )
        found: list[Group] = []
        while True:
            reply = await self._connection.ask(self._connection.groups.List, request)
            found += (decoded(group, Group) for group in reply.groups)
            request.page_token = reply.next_page_token
            if not request.page_token:
                return tuple(found)

    async def shards(self, group: str) -> "ShardedGroup":
        """How a group that is shared out by shards stands, shard by shard.

        Raises:
            GroupNotFound, GroupAmbiguous: there is none, or several.
            ShardsNeedOrder: it has no shards.
            OrderNeedsOneTopic: the topic that it reads is gone.
        """
        from dss_api.v1 import groups_pb2

        request = groups_pb2.ShardsRequest(group=group)
        reply = await self._connection.ask(self._connection.groups.Shards, request)
        return decoded(reply, ShardedGroup)

    async def describe(self, group: str) -> "GroupDescription":
        """One group by NAME, NAME@FILTER or ``$share/NAME/FILTER``.

        Raises:
            GroupNotFound: there is none.
            GroupAmbiguous: several have the name.
        """
        from dss_api.v1 import groups_pb2
        from dss_client.answers import GroupDescription

        request = groups_pb2.DescribeGroupRequest(group=group)
        reply = await self._connection.ask(self._connection.groups.Describe, request)
        return decoded(reply, GroupDescription)

    async def offsets(self, group: str, *, streams: Sequence[str] = ()) -> "GroupOffsets":
        """Where a group stands, for `ImportOffsets` into another group or daemon.

        Args:
            group: as for `describe`.
            streams: only these; all that the group reads where empty.

        Raises:
            GroupNotFound, GroupAmbiguous: there is none, or several have the name.
            StreamNotRead: the group does not read one of the streams.
        """
        from dss_api.v1 import groups_pb2
        from dss_client.offsets import GroupOffsets

        request = groups_pb2.GroupOffsetsRequest(group=group, streams=streams)
        reply = await self._connection.ask(self._connection.groups.Offsets, request)
        return decoded(reply, GroupOffsets)

    async def why(
        self,
        group: str,
        *,
        stream: str = "",
        offset: int | None = None,
        key: bytes | None = None,
        topic: str = "",
    ) -> "WhyAnswer":
        """Where a record stands for a group, and why it does not come.

        Args:
            group: as for `describe`.
            stream: with ``offset``, the record; with ``key``, look only there.
            offset: of the record; with ``key`` and ``stream``, look from there on.
            key: of the records: the oldest that are not done, else the newest done one.
            topic: with ``key``, look only there.

        Raises:
            GroupNotFound, GroupAmbiguous: there is none, or several have the name.
            TopicNotFound, StreamNotFound, StreamNotRead: the group does not read the stream.
            OffsetNotWritten: the stream ends before the offset.
            KeyNotFound: no record of the key is kept.
            IllegalArgument: neither a stream and an offset nor a key was named.
        """
        from dss_api.v1 import groups_pb2
        from dss_client.answers import WhyAnswer

        if offset is not None and not 0 <= offset < 1 << 64:
            raise IllegalArgument(argument=f"offset {offset}", rule="it counts from 0, in 64 bits")
        request = groups_pb2.WhyRequest(
            group=group, stream=stream, offset=offset, key=key, topic=topic
        )
        reply = await self._connection.ask(self._connection.groups.Why, request)
        return decoded(reply, WhyAnswer)

    async def stuck(
        self, group: str | None = None, *, after: float | None = None
    ) -> "tuple[Stuck, ...]":
        """Which groups and streams do not move though they have records, and why.

        Args:
            group: as for `describe`; all where none is given.
            after: seconds without progress after which a stream counts as stuck; a minute where
            none is given.

        Raises:
            GroupNotFound, GroupAmbiguous: there is none, or several have the name.
        """
        from dss_api.v1 import groups_pb2
        from dss_client.answers import Stuck

        request = groups_pb2.StuckRequest(
            group=group or "", after_ms=None if after is None else round(after * 1_000)
        )
        reply = await self._connection.ask(self._connection.groups.Stuck, request)
        return tuple(decoded(each, Stuck) for each in reply.stuck)

    async def verify(
        self,
        group: str,
        *,
        streams: Sequence[str] = (),
        scan: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> "tuple[StreamSums, ...]":
        """Whether the records that a group has finished, by kind, add up with what was appended.

        Args:
            group: as for `describe`.
            streams: only these; all that the group reads where empty.
            scan: also count anew what the log still has; the daemon paces that.
            progress: called with how many offsets of how many a scan has looked at.

        Raises:
            GroupNotFound, GroupAmbiguous: there is none, or several have the name.
            StreamNotRead: the group does not read one of the streams.
            LogUnreadable: a scan met what cannot be read.
            Overloaded: somebody else scans.
        """
        from dss_api.v1 import groups_pb2
        from dss_client._connection import ConnectionLostError
        from dss_client.answers import StreamSums

        request = groups_pb2.VerifyRequest(group=group, streams=streams, scan=scan)

        async def verified() -> "tuple[StreamSums, ...]":
            timeout = None if scan else CALL_TIMEOUT_S
            call = self._connection.groups.Verify(request, timeout=timeout)
            found: list[StreamSums] = []
            try:
                while (reply := await self._connection.read_or_end(call)) is not None:
                    if reply.HasField("sums"):
                        found.append(decoded(reply.sums, StreamSums))
                    elif progress is not None:
                        progress(reply.progress.done, reply.progress.of)
            except ConnectionLostError as lost:
                raise lost.reason from lost
            finally:
                call.cancel()
            return tuple(found)

        return await self._connection.outages.over(verified, repeats=True)

    async def remove(self, group: str, *, if_exists: bool = False, if_unused: bool = False) -> bool:
        """Remove a group and its progress; tells whether there was one.

        Raises:
            GroupNotFound: there is none, and ``if_exists`` was not given.
            GroupInUse: a client has subscribed to it, and ``if_unused`` was given.
            DaemonKnowsNoMetadata: it is older, and would remove a group that is in use.
            GroupAmbiguous: several have the name.
        """
        from dss_api.v1 import groups_pb2

        await check_knows(self._connection, METADATA if if_unused else "")
        request = groups_pb2.RemoveGroupRequest(
            group=group, if_exists=if_exists, if_unused=if_unused
        )
        reply = await self._connection.change(self._connection.groups.Remove, request)
        return reply.removed


def _spans(
    ack_wait: float | None, backoff: Sequence[float], unused: float | None
) -> dict[str, Any]:
    """Spans of a group that is to be made, as the wire has them.

    Raises:
        IllegalArgument: one is no number of seconds.
    """
    ack_wait_ms = None if ack_wait is None else span_ms("ack_wait", ack_wait)
    spans = {"ack_wait_ms": ack_wait_ms, "backoff_ms": spans_ms("backoff", backoff)}
    return spans if unused is None else spans | {"unused_ms": span_ms("unused", unused)}


def _numbers(**said: str | None) -> dict[str, Any]:
    """Words of a group that is to be made, as the wire has them; 0 where nothing is said.

    Raises:
        IllegalArgument: one is none of its enum.
    """
    from dss_api.v1 import groups_pb2

    fields = groups_pb2.CreateGroupRequest.DESCRIPTOR.fields_by_name
    return {name: number_of(fields[name].enum_type, name, word) for name, word in said.items()}


class Grants:
    """Which member holds which stream; reached as ``client.grants``."""

    def __init__(self, connection: "Connection") -> None:
        self._connection = connection

    async def list(self, group: str | None = None) -> tuple[Grant, ...]:
        """The grants of one group, or of all.

        Raises:
            GroupNotFound: there is no such group.
            GroupAmbiguous: several have the name.
        """
        from dss_api.v1 import groups_pb2

        request = groups_pb2.ListGrantsRequest(group=group or "")
        reply = await self._connection.ask(self._connection.grants.List, request)
        return tuple(decoded(grant, Grant) for grant in reply.grants)
