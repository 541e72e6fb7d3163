"""What a list of operations says of each."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from dss_api.v1 import operations_pb2
from dss_core.changes import Direction, MoveCursors, SkipRecords, ToOffset
from dssd.machines.start_point import Earliest
from dssd.rpc.operations import OperationsServicer
from dssd.store.memory import MemoryStore
from support.operated_groups import Works

NOBODY: Any = SimpleNamespace()


async def test_a_list_says_of_undo_what_an_undo_says(tmp_path: Path) -> None:
    works = Works(tmp_path, MemoryStore())
    await works.start()
    [stream] = await works.plant.topic("orders", 1)
    await works.plant.publish(stream, 100)
    await works.plant.group("$share/billing/orders/#", Earliest())
    skipped = await works.apply(SkipRecords("billing", "orders/0/0", 7))
    moved = await works.apply(MoveCursors("billing", Direction.SKIP, to=ToOffset(20)))
    servicer = OperationsServicer(works.operations, works.plant.catalogue, NOBODY)
    listed = await servicer.List(operations_pb2.ListOperationsRequest(), NOBODY)
    said = {each.number: (each.undoable, each.not_undoable_because) for each in listed.operations}
    why = f"operation {moved.number} moved the cursor of orders/0/0 after it"
    assert said == {moved.number: (True, ""), skipped.number: (False, why)}
    await works.stop()
