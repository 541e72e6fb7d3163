from collections.abc import Callable

from dss_api.v1 import sessions_pb2 as wire
from dss_client._held_shards import HeldShard, HeldShards, held_shard
from dss_core.shards import Shard

ONE, OTHER = HeldShard(Shard(1, 6), 7), HeldShard(Shard(2, 6), 8)


def test_a_shard_is_told_at_the_first_of_its_streams_and_lost_before_the_last_goes() -> None:
    told: list[object] = []

    def tell(callback: Callable[..., None] | None, *what: object) -> None:
        assert callback is not None
        callback(*what)

    held = HeldShards(
        tell, lambda *what: told.append(what), lambda shards: told.append(("lost", shards))
    )
    for each in (None, ONE, ONE, OTHER):
        held.add(each)
    assert told == [((Shard(1, 6),), 7), ((Shard(2, 6),), 8)]
    for each in (None, ONE):
        held.let_go(each)
    assert len(told) == 2
    held.let_go(ONE)
    assert told[2:] == [("lost", (Shard(1, 6),))]
    held.add(ONE._replace(epoch=9))
    assert told[3:] == [((Shard(1, 6),), 9)]


def test_a_group_that_is_not_shared_out_by_shards_names_none() -> None:
    assert held_shard(wire.Granted(grant=1)) is None
    assert held_shard(wire.Granted(shards=6, shard=1, shard_epoch=7)) == ONE
