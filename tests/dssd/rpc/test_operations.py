"""What a list of operations says of each."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from dss_api.v1 import operations_pb2
from dss_core.changes import (
    Direction,
    EditTopic,
    MoveCursors,
    RedriveDeadLetters,
    ToOffset,
)
from dss_core.filters import SubscriptionFilter
from dss_core.lane import DEAD
from dssd.leaders.declarations import AskedRetries
from dssd.machines.start_point import Earliest
from dssd.rpc.operations import OperationsServicer
from dssd.store.memory import MemoryStore
from support.operated_groups import ANA, Works
from support.queued_entries import Failed, append_entries

FIVE = tuple(Failed(offset) for offset in range(5))
NOBODY: Any = SimpleNamespace()


async def test_a_list_says_of_undo_what_an_undo_says(tmp_path: Path) -> None:
    works = Works(tmp_path, MemoryStore())
    await works.start()
    [stream] = await works.plant.topic("orders", 1)
    await works.plant.publish(stream, 100)
    await works.plant.group("$share/billing/orders/#", Earliest())
    skipped = await works.apply(MoveCursors("billing", Direction.SKIP, to=ToOffset(7)))
    moved = await works.apply(MoveCursors("billing", Direction.SKIP, to=ToOffset(20)))
    servicer = OperationsServicer(works.operations, works.plant.catalogue, NOBODY)
    listed = await servicer.List(operations_pb2.ListOperationsRequest(), NOBODY)
    said = {each.number: (each.undoable, each.not_undoable_because) for each in listed.operations}
    why = f"operation {moved.number} moved the cursor of orders/0/0 after it"
    assert said == {moved.number: (True, ""), skipped.number: (False, why)}
    await works.stop()


async def test_a_redrive_that_runs_tells_of_its_records_and_no_other_operation_does(
    tmp_path: Path,
) -> None:
    works = Works(tmp_path, MemoryStore())
    await works.start()
    plant = works.plant
    [stream] = await plant.topic("orders", 1)
    parsed = SubscriptionFilter.parse("$share/g/orders/#")
    group = await plant.groups.declare(parsed, retries=AskedRetries(5))
    await plant.catalogue.make_queues(group.group_id, plant.catalogue.get("orders"))
    queues = plant.catalogue.queues_of(group.group_id, stream)
    assert queues is not None
    await append_entries(plant, queues[DEAD - 1], FIVE)
    edited = await works.apply(EditTopic("orders", retention_ms=9_000_000))
    running = await works.operations.apply(RedriveDeadLetters("g"), caller=ANA)
    servicer = OperationsServicer(works.operations, plant.catalogue, NOBODY)
    shown = await servicer.Get(operations_pb2.GetOperationRequest(number=running.number), NOBODY)
    assert (shown.records_done, shown.records_asked) == (0, 5)
    listed = await servicer.List(operations_pb2.ListOperationsRequest(), NOBODY)
    counts = {each.number: each.HasField("records_asked") for each in listed.operations}
    assert counts == {running.number: True, edited.number: False}
    await works.stop()
