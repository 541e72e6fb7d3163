"""The rows that a session owns beside its own: subscriptions, and private groups.

Invariant: a private group is never kept without the row of its subscription. One commit writes
both, and one commit removes both when the client leaves. Discarding a session takes several
commits: rows that a crash leaves behind are removed when the session is resumed or discarded again,
or at the next start, where no session owns them.
"""

from contextlib import suppress

from dss_core.errors import DssError, GroupDestroyed, GroupNotFound
from dssd.leaders.declarations import EXCLUSIVE
from dssd.leaders.groups import Groups
from dssd.sessions.session_parts import Services
from dssd.store.paging import scan_all
from dssd.store.port import Delete, Store, Write
from dssd.store.rows import GroupRow, SubscriptionRow


async def taken_up(
    services: Services, session_id: bytes
) -> tuple[list[tuple[SubscriptionRow, GroupRow]], list[tuple[int, DssError]]]:
    """The subscriptions of a resumed session, and the lost ones, each with its error.

    A subscription is lost when its group is gone. Rows without a group and private groups without
    a row are removed.
    """
    there: list[tuple[SubscriptionRow, GroupRow]] = []
    lost: list[tuple[int, DssError]] = []
    for found in await scan_all(services.store, SubscriptionRow, (session_id,)):
        row = found.row
        try:
            there.append((row, services.groups.get(row.group_id)))
        except DssError as error:
            lost.append((row.subscription, error))
    await _forget_rows(services.store, session_id, [number for number, _ in lost])
    in_use = {group.group_id for _, group in there}
    for group in services.groups.owned(session_id):
        if group.group_id not in in_use:
            await remove_group(services.groups, group.group_id)
    return there, lost


async def discard(services: Services, session_id: bytes) -> None:
    """Remove all that a session owns."""
    for group in services.groups.owned(session_id):
        await remove_group(services.groups, group.group_id)
    rows = await scan_all(services.store, SubscriptionRow, (session_id,))
    await _forget_rows(services.store, session_id, [each.row.subscription for each in rows])


async def discard_orphans(services: Services, live: set[bytes]) -> None:
    """Remove the rows of sessions that do not exist any more, left behind by a crash."""
    for group in services.groups.groups():
        if group.kind == EXCLUSIVE and group.session_id not in live:
            await remove_group(services.groups, group.group_id)
    rows = await scan_all(services.store, SubscriptionRow)
    lost: list[Write] = [
        Delete(SubscriptionRow, (each.row.session_id, each.row.subscription))
        for each in rows
        if each.row.session_id not in live
    ]
    if lost:
        await services.store.commit(lost)


async def remove_group(groups: Groups, group_id: int) -> None:
    """Remove a group; somebody else may have done so before."""
    with suppress(GroupNotFound, GroupDestroyed):
        await groups.remove(group_id)


async def _forget_rows(store: Store, session_id: bytes, subscriptions: list[int]) -> None:
    deletes: list[Write] = [
        Delete(SubscriptionRow, (session_id, subscription)) for subscription in subscriptions
    ]
    if deletes:
        await store.commit(deletes)
