"""Plain reading of a log: no group, no acks, no session.

Invariant: records of a stream come in order, each once; between streams there is no order. A
lost connection ends the reading with an error: where it stood is known to the caller.
"""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import TYPE_CHECKING

from dss_client._start import Start, start_to_wire, time_us
from dss_client.record import Batch, Record
from dss_core.errors import IllegalArgument
from dss_core.filters import TopicFilter
from dss_core.ids import StreamName

if TYPE_CHECKING:
    from dss_api.v1 import log_pb2
    from dss_client._connection import Connection


class ReadPiece:
    """What the records of one answer share."""

    __slots__ = ("stream",)

    def __init__(self, stream: str) -> None:
        self.stream = stream


class Reader:
    """Made by `Client.read`; iterate over it by record, or over its `batches`."""

    def __init__(self, connection: "Connection", request: "log_pb2.ReadRequest") -> None:
        self._connection = connection
        self._request = request
        self.streams: tuple[str, ...] = ()
        """Every stream that is read, once the first answer came."""

    async def __aiter__(self) -> AsyncIterator[Record]:
        """Records, one by one.

        Raises:
            DssError: the daemon refuses, or the connection was lost.
        """
        async for batch in self.batches():
            for record in batch:
                yield record

    async def batches(self) -> AsyncIterator[Batch]:
        """Records as columns.

        Raises:
            DssError: the daemon refuses, or the connection was lost.
        """
        import grpc.aio

        from dss_core.decode import decode

        call = self._connection.log.Read(self._request)
        try:
            async for reply in call:
                if reply.streams:
                    self.streams = (*self.streams, *reply.streams)
                if reply.frames:
                    mask = tuple((each.start, each.end) for each in reply.mask)
                    batch = Batch(ReadPiece(reply.stream), decode(reply.frames, mask))
                    if len(batch):
                        yield batch
        except grpc.aio.AioRpcError as error:
            raise self._connection.translated(error) from error
        finally:
            call.cancel()


def read_request(
    filter: str,
    *,
    start: Start,
    end: str | datetime | None,
    follow: bool,
    stream: str | None,
    records_max: int | None,
) -> "log_pb2.ReadRequest":
    """The request of a reading.

    Raises:
        IllegalFilter, IllegalTime, IllegalName, IllegalArgument: an argument breaks its rule.
    """
    from dss_api.v1 import log_pb2

    if records_max is not None and records_max < 0:
        raise IllegalArgument(argument=f"records_max {records_max}", rule="it is not negative")
    return log_pb2.ReadRequest(
        filter=TopicFilter.parse(filter).text,
        start=start_to_wire(start),
        end_time_us=None if end is None else time_us(end),
        follow=follow,
        stream=None if stream is None else str(StreamName.parse(stream)),
        records_max=records_max,
    )
