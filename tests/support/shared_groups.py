"""A group of real leaders whose members answer everything, and which member holds what."""

from dssd.machines.start_point import Earliest
from support.operated_groups import Works
from support.played_answers import Answering


async def shared(works: Works, *names: str, streams: int = 4) -> dict[str, Answering]:
    """A group whose members answer everything, once they share its streams."""
    await works.plant.topic("orders", streams)
    group = await works.plant.group("$share/billing/orders/#", Earliest())
    members = {name: Answering(works.plant, group, name) for name in names}
    for member in members.values():
        member.begin()
    await works.until(lambda: sum(len(each.held) for each in members.values()) == streams)
    await works.until(lambda: {len(each.held) for each in members.values()} <= _shares(members))
    return members


def _shares(members: dict[str, Answering]) -> set[int]:
    streams = sum(len(each.held) for each in members.values())
    return {streams // len(members), -(-streams // len(members))}


async def grants(works: Works) -> dict[str, tuple[str, str]]:
    """Who holds each stream, and to whom it is pinned."""
    survey = await works.plant.registry.survey(works.plant.groups.find("billing"))
    return {str(each.name): (each.view.client_id, each.view.pinned_to) for each in survey.streams}


def of(member: Answering) -> str:
    """A stream that the member holds."""
    return f"orders/0/{min(stream.partition for stream in member.held)}"
