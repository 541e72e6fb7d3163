"""Members that an operator ends, and clients that are kept out for a while.

The leader ends the member (`evictions` of its machine). A ban is a row of the operation's commit;
taking the operation back takes the row away. Invariant: the row names the operation that wrote it,
so an older operation does not lift a later ban.
"""

import json
from typing import Any

from dss_core.changes import Evict, Undo
from dss_core.counted import counted
from dss_core.errors import IllegalArgument, NotUndoable, Overloaded
from dss_core.times import text_of_span
from dssd.clock import Clock
from dssd.leaders.bans import ban_of
from dssd.leaders.groups import Groups
from dssd.leaders.limits import BAN_MS_MAX
from dssd.leaders.registry import Registry
from dssd.limits import REVOKE_DEADLINE_MS, SILENT_HOLDER_MS
from dssd.machines.leader import hand_over_events as leader
from dssd.machines.leader.events import Instruction, MemberView
from dssd.operations.kinds.members import Membership, id_of, membership
from dssd.operations.plans import Begun, Made, Plan, subject_of
from dssd.store.paging import scan_all
from dssd.store.port import Delete, Put, Store, Versioned, VersionIs
from dssd.store.rows import BanRow, OperationRow, SubscriptionRow

EVICTION_ANSWER_MS = SILENT_HOLDER_MS
"""The least time for an evicted member to report how far it handed out, whatever its grace: a
member that answers leaves nothing in doubt."""


EVICTION_GRACE_MS_MAX = 600_000
"""The longest grace in which an evicted member may settle its records: nobody else gets its streams
meanwhile."""

BANS_A_GROUP_MAX = 1_000
"""How many clients are banned from a group at a time; a leader has them in memory."""


EVICT = "borrowers.evict"


class Evictions:
    """Plans and begins evictions."""

    def __init__(self, store: Store, groups: Groups, registry: Registry, clock: Clock) -> None:
        self._store = store
        self._groups = groups
        self._registry = registry
        self._clock = clock

    async def plan(self, change: Evict) -> Plan:
        """What the eviction would do.

        Raises:
            GroupNotFound, GroupAmbiguous, NotForPrivateGroups, BorrowerNotFound, IllegalArgument,
            Overloaded: it cannot be done.
        """
        _check(change)
        live = await membership(self._groups, self._registry, change.group, EVICT)
        member = live.member(change.borrower)
        if change.ban_ms is not None:
            await self._check_bans(live, member)
        return _planned(change, live, member)

    async def begin(self, plan: Plan, number: int) -> Begun:
        """The ban, and the instruction to end the member."""
        assert plan.group is not None
        assert isinstance(plan.change, Evict)
        change = plan.change
        live = Membership(plan.group, await self._registry.survey(plan.group))
        member = live.member(change.borrower)
        after: dict[str, Any] = {
            "borrower_id": id_of(member),
            "session_id": member.session_id.hex(),
            "client_id": member.client_id,
            "subscription": member.subscription,
            "grace_ms": change.grace_ms,
        }
        after["version"] = await self._version(after)
        row = None
        if change.ban_ms is not None:
            until_ms = self._clock.wall_ms() + change.ban_ms
            row = BanRow(plan.group.group_id, member.client_id, until_ms, number, change.ban_ms)
            after |= {"banned_until_ms": until_ms, "ban_ms": change.ban_ms}
        return Begun(
            writes=[] if row is None else [Put(row)],
            group=plan.group,
            instruction=self._evict(number, plan.reason, row, after),
            after=after,
        )

    async def plan_undo(self, undone: OperationRow) -> Plan:
        """What letting the client in again would do.

        Raises:
            NotUndoable: its ban is over, or another operation bans the client.
        """
        ban = (await self._ban(undone)).row
        group = self._groups.get(undone.group_id)
        return Plan(
            change=Undo(undone.number),
            kind=undone.kind,
            subject=subject_of(group),
            revision=group.revision,
            summary=f"take back operation {undone.number}: {ban.client_id} may subscribe again",
            group=group,
            effects=(f"{ban.client_id} does not come back by itself: it has to subscribe again.",),
            members=(ban.client_id,),
            not_undoable_because="a client is kept out with dssctl borrowers evict --ban",
        )

    async def begin_undo(self, undone: OperationRow, plan: Plan, number: int) -> Begun:
        """The ban's row goes."""
        ban = await self._ban(undone)
        key = (ban.row.group_id, ban.row.client_id)
        return Begun(
            writes=[Delete(BanRow, key)],
            preconditions=[VersionIs(BanRow, key, ban.version)],
            group=plan.group,
            instruction=leader.LiftBan(number, ban.row.client_id),
            after={"client_id": ban.row.client_id},
        )

    async def resumed(self, row: OperationRow) -> Begun:
        """Evict the member if it comes back, unless its client has subscribed anew since."""
        after = json.loads(row.after)
        if row.undoes:
            return Begun(instruction=leader.LiftBan(row.number, after["client_id"]))
        ban = None
        is_bound = "version" in after and "banned_until_ms" not in after
        if is_bound and await self._version(after) != after["version"]:
            return Begun()
        if "banned_until_ms" in after:
            lasting = after["banned_until_ms"], row.number, after.get("ban_ms")
            ban = BanRow(row.group_id, after["client_id"], *lasting)
        return Begun(instruction=self._evict(row.number, row.reason, ban, after))

    def cancellation(self, row: OperationRow) -> Instruction | None:
        """A member that was not asked to leave stays; a ban counts from the commit."""
        is_final = row.undoes or "banned_until_ms" in json.loads(row.after)
        return None if is_final else leader.CancelHandOvers(row.number)

    async def made(self, row: OperationRow) -> Made:
        """Whether the member is gone."""
        after = json.loads(row.after)
        live = self._registry.snapshot(row.group_id)
        who = bytes.fromhex(after["session_id"]), after.get("subscription")
        members = () if live is None else live.members
        is_there = any((each.session_id, each.subscription) == who for each in members)
        return Made(not is_there, 1)

    def _evict(
        self, number: int, reason: str, ban: BanRow | None, after: dict[str, Any]
    ) -> leader.Evict:
        return leader.Evict(
            number,
            bytes.fromhex(after["borrower_id"]),
            bytes.fromhex(after["session_id"]),
            reason or f"operation {number} gives no reason",
            after["grace_ms"],
            None if ban is None else ban_of(ban, self._clock),
            after.get("subscription"),
        )

    async def _version(self, after: dict[str, Any]) -> int | None:
        """The version of the row of the member's subscription: a new subscription has another."""
        key = bytes.fromhex(after["session_id"]), after["subscription"]
        found = await self._store.read(SubscriptionRow, key)
        return None if found is None else found.version

    async def _check_bans(self, live: Membership, member: MemberView) -> None:
        bans = await scan_all(self._store, BanRow, (live.group.group_id,))
        others = [each for each in bans if each.row.client_id != member.client_id]
        if len(others) >= BANS_A_GROUP_MAX:
            raise Overloaded(what="The number of bans of a group", limit=BANS_A_GROUP_MAX)

    async def _ban(self, undone: OperationRow) -> Versioned[BanRow]:
        client_id = json.loads(undone.after)["client_id"]
        ban = await self._store.read(BanRow, (undone.group_id, client_id))
        if ban is None or ban.row.number != undone.number:
            why = f"its ban of {client_id} is over, or a later one is in its place"
            raise NotUndoable(number=undone.number, kind=undone.kind, why=why)
        return ban


def _check(change: Evict) -> None:
    if change.grace_ms is not None and change.grace_ms > EVICTION_GRACE_MS_MAX:
        raise IllegalArgument(
            argument=f"a grace of {text_of_span(change.grace_ms)}",
            rule=f"at most {text_of_span(EVICTION_GRACE_MS_MAX)}: nobody else gets these streams "
            "meanwhile",
        )
    if change.ban_ms is not None and not 0 < change.ban_ms <= BAN_MS_MAX:
        raise IllegalArgument(
            argument=f"a ban of {text_of_span(change.ban_ms)}",
            rule=f"it lasts a moment at least, and {text_of_span(BAN_MS_MAX)} at most",
        )


def _planned(change: Evict, live: Membership, member: MemberView) -> Plan:
    owned = live.owned(member)
    name = member.client_id
    banned = change.ban_ms is not None
    others = sum(each.session_id != member.session_id for each in live.staying)
    return Plan(
        change=Evict(change.group, id_of(member), change.grace_ms, change.ban_ms),
        kind=EVICT,
        subject=live.subject,
        revision=live.group.revision,
        summary=f"evict {name} from {live.subject}: "
        f"{counted(len(owned), 'stream goes', 'streams go')} to others",
        group=live.group,
        effects=_effects(change, name, len(owned), others),
        members=(name,),
        not_undoable_because="" if banned else f"{name} may subscribe again by itself",
    )


def _effects(change: Evict, name: str, owned: int, others: int) -> tuple[str, ...]:
    grace_ms = (
        REVOKE_DEADLINE_MS if change.grace_ms is None else max(change.grace_ms, EVICTION_ANSWER_MS)
    )
    streams = counted(owned, "stream")
    effects = [f"The subscription of {name} ends with an error; it does not come back by itself."]
    if owned:
        effects.append(
            f"{name} has {text_of_span(grace_ms)} to settle its records in flight; the rest comes "
            "again, marked as redelivered. Nothing that was acknowledged comes again."
        )
        effects.append(
            f"{counted(others, 'other member gets', 'other members share')} its {streams}, and "
            "others keep the streams that they hold."
            if others
            else f"Nobody else is there: its {streams} wait for the next member."
        )
    if change.ban_ms is not None:
        effects.append(f"{name} is kept out of the group for {text_of_span(change.ban_ms)}.")
    return tuple(effects)
