"""What a session owns, where a crash left a part of it."""

from dss_sim.played_sessions import Hall
from dssd.queues.writers import QueueWriters
from dssd.sessions.client_items import Opening
from dssd.sessions.owned_rows import discard_orphans
from dssd.sessions.session_parts import Services
from dssd.store.port import Delete, Put
from dssd.store.rows import SubscriptionRow


async def test_a_private_group_without_a_subscription_goes_when_its_session_resumes(
    hall: Hall,
) -> None:
    async with hall.attached(expiry_s=60) as client:
        await client.subscribe("lost/#", 1)
        await client.subscribe("kept/#", 2)
    lost = (client.opened.session_id, 1)
    await hall.plant.store.commit([Delete(SubscriptionRow, lost)])
    async with hall.attached(clean_start=False):
        assert [group.filter for group in hall.plant.groups.groups()] == ["kept/#"]


async def test_a_subscription_without_a_group_is_refused_when_its_session_resumes(
    hall: Hall,
) -> None:
    async with hall.attached(expiry_s=60) as client:
        await client.subscribe("orders/#")
    [group] = hall.plant.groups.groups()
    await hall.plant.groups.remove(group.group_id)
    async with hall.attached(clean_start=False) as client:
        refused = await client.refused()
        assert (refused.subscription, refused.final) == (1, True)
        assert await hall.plant.store.scan(SubscriptionRow) == []


async def test_what_sessions_owned_that_are_no_more_goes_at_the_start(hall: Hall) -> None:
    session = await hall.sessions.attach(Opening("c"))
    async with hall.attached("kept") as client:
        await client.subscribe("kept/#")
        orphan = SubscriptionRow(b"gone", 1, "orders/#", 99)
        await hall.plant.store.commit([Put(orphan)])
        kept = client.opened.session_id
        await discard_orphans(
            Services(
                hall.plant.store,
                hall.plant.catalogue,
                hall.plant.log,
                hall.plant.groups,
                hall.plant.registry,
                hall.plant.clock,
                QueueWriters(hall.plant.log),
            ),
            {kept, session.session_id},
        )
        rows = [found.row for found in await hall.plant.store.scan(SubscriptionRow)]
        assert [row.session_id for row in rows] == [kept]
    hall.sessions.detach(session)
