"""For tests of programs that use this client: a daemon in memory, without a process or a disk.

::

    from dss_client.testing import MemoryDaemon

    async def test_orders_are_acknowledged(tmp_path: Path) -> None:
        async with (
            MemoryDaemon(tmp_path / "d.sock") as daemon,
            dss_client.connect(endpoint=daemon.endpoint) as client,
            client.producer("t") as producer,
            client.subscribe("$share/g/t/#") as subscription,
        ):
            await producer.send(b"order 1")
            (record,) = await subscription.fetch(1)
            await record.ack(sync=True)
        assert daemon.acknowledged() == 1

A test can end every call with `MemoryDaemon.cut` and begin again with `start`, refuse frames with
`refuse`, withhold answers with `mute_acks` and the other ``mute_`` flags, take a stream back with
`revoke`, let the topic go on in other streams with `switch`, and wait with `until` for something
that the daemon has seen.

Invariant: what it answers, a real daemon answers too. What it does not have it refuses
(``UNIMPLEMENTED``): groups, topics other than ``t``, plain publishing, the daemon's status.
"""

from dss_client.testing.memory_daemon import MemoryDaemon
from dss_client.testing.memory_session import until

__all__ = ["MemoryDaemon", "until"]
