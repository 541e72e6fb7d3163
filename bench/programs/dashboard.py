"""A dashboard of so many groups, all of which change so many times a second.

Usage: dashboard.py GROUPS PER_SECOND. It runs on the terminal that it is given. Each update is a
message as a daemon sends it, decoded here as the client decodes it.
"""

import asyncio
import sys
from dataclasses import replace

from dss_api.v1 import groups_pb2, watch_pb2
from dss_client import Operation, OperationPlan
from dss_client.changes import Change
from dss_client.schedules import ScheduleRun
from dss_client.watch import updates_from_wire
from dssctl.top.feed.clock import wall_ms
from dssctl.top.feed.live import rest_s
from dssctl.top.feed.source import Tell
from dssctl.top.model.answers import Answer, Question
from dssctl.top.model.picture import Picture, Ticked, Updated
from dssctl.top.model.places import Ordering, Place, Way
from dssctl.top.paint.frame import Badge
from dssctl.top.run import spare_collector
from dssctl.top.stage.view import View
from dssctl.top.terminal.app import Dashboard

TOKEN = watch_pb2.WatchToken(instance=b"i", revision=1)

REPLY_ITEMS = 1_000
"""In a message of a daemon, at most."""


class Fed:
    """Tells made-up updates at a pace of its own."""

    def __init__(self, groups: int, per_second: float) -> None:
        self._groups = groups
        self._per_second = per_second

    async def run(self, tell: Tell) -> None:
        """Tell all groups; then, at the pace, that each of them changed."""
        loop = asyncio.get_running_loop()
        turns = [self._messages(turn) for turn in range(4)]
        tell(Ticked(wall_ms()))
        await self._tell(tell, turns[0])
        turn, next_at = 1, loop.time()
        while self._per_second:
            next_at += 1 / self._per_second
            await asyncio.sleep(max(0.0, next_at - loop.time()))
            await self._tell(tell, turns[1 + turn % 3])
            turn += 1
            if turn % max(1, round(self._per_second)) == 0:
                tell(Ticked(wall_ms()))
        await asyncio.Event().wait()

    async def _tell(self, tell: Tell, messages: list[bytes]) -> None:
        for message in messages:
            for update in updates_from_wire(watch_pb2.WatchReply.FromString(message)):
                tell(Updated(update))
                await asyncio.sleep(rest_s(update))

    def _messages(self, turn: int) -> list[bytes]:
        """All groups as they are then, in messages as long as those of a daemon."""
        items = [
            watch_pb2.WatchedItem(group=self._group(number, turn)) for number in range(self._groups)
        ]
        parts = [items[at : at + REPLY_ITEMS] for at in range(0, len(items), REPLY_ITEMS)]
        return [
            watch_pb2.WatchReply(
                anew=turn == 0 and part is parts[0],
                changed=part,
                token=TOKEN if part is parts[-1] else None,
            ).SerializeToString()
            for part in parts
        ]

    def _group(self, number: int, turn: int) -> groups_pb2.Group:
        return groups_pb2.Group(
            group_id=number,
            name=f"group-{number:04}",
            filter="orders/#",
            kind=groups_pb2.GROUP_KIND_SHARED,
            protocol=groups_pb2.GROUP_PROTOCOL_BORROW,
            on_damage=groups_pb2.ON_DAMAGE_PASS,
            state="active",
            borrowers=2,
            streams=8,
            lag=(number * 7_919 + turn * 104_729) % 100_000,
            arrivals=groups_pb2.Rates(minute=900.0 + turn, five_minutes=900.0),
            acks=groups_pb2.Rates(minute=890.0 - turn, five_minutes=900.0),
        )

    async def answer(self, place: Place, question: Question, picture: Picture) -> Answer:
        """Nothing is asked here."""
        return Answer(place)

    async def plan(self, change: Change) -> OperationPlan:
        """Nothing is changed here."""
        raise NotImplementedError

    async def apply(self, plan: OperationPlan, *, reason: str, operation_id: str) -> Operation:
        """Nothing is changed here."""
        raise NotImplementedError

    async def trigger(self, schedule: str, *, reason: str) -> ScheduleRun:
        """Nothing is run here."""
        raise NotImplementedError


def main() -> None:
    """Run it until it is ended."""
    groups, per_second = int(sys.argv[1]), float(sys.argv[2])
    way = Way.starting(Place("pulse")).into(Place("groups"))
    # By name, so that the number of a row stays its own while all of them change.
    way = way.seeing(replace(way.here, ordering=Ordering("name", descending=False)))
    spare_collector()
    Dashboard(View(Badge("made up"), way=way), Fed(groups, per_second)).run()


if __name__ == "__main__":
    main()
