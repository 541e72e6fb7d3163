"""The Python client of DSS without asyncio: for scripts, notebooks and drivers of Spark.

Its names are those of `dss_client`; what is awaited there returns here, and what is iterated over
with ``async for`` is iterated over with ``for``::

    import dss_client.sync

    with dss_client.sync.connect() as client, client.subscribe("$share/g/t/#") as subscription:
        for record in subscription:
            record.ack()

It may be used from several threads at once. Invariant: everything that a client does happens in
one loop in one background thread; importing this package costs no gRPC and no pyarrow.
"""

from dss_client._failure import Reject
from dss_client.sync._running import run
from dss_client.sync.client import Client, connect
from dss_client.sync.producer import Delivery, Producer
from dss_client.sync.reader import Reader
from dss_client.sync.records import DeliveredBatch, DeliveredRecord
from dss_client.sync.subscription import Subscription

__all__ = [
    "Client",
    "DeliveredBatch",
    "DeliveredRecord",
    "Delivery",
    "Producer",
    "Reader",
    "Reject",
    "Subscription",
    "connect",
    "run",
]
