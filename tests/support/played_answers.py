"""A member of a real leader that answers by itself, at once, as a borrower does.

Invariant: `held` is what it was granted and has not given back.
"""

from dss_core.ids import StreamId
from dss_core.progress import Progress
from dss_sim.played_groups import Member, Plant
from dssd.machines.messages import (
    Disconnect,
    Grant,
    LeaderWanted,
    PauseChanged,
    PauseObeyed,
    Revoke,
    Revoked,
    RevokeFinished,
    StreamReport,
    ToBorrower,
    UpdateProgress,
)
from dssd.store.rows import GroupRow


class Answering(Member):
    """It consumes nothing."""

    def __init__(
        self, plant: Plant, group: GroupRow, name: str, *, session: str = "", client_id: str = ""
    ) -> None:
        super().__init__(plant, group, name, session)
        self.detach()
        self.detach = plant.registry.attach_borrower(self.borrower_id, self._take)
        self.client_id = client_id or name
        self.held: dict[StreamId, int] = {}
        """With their grant epochs."""
        self.holding = False
        """It keeps streams that are revoked."""

    def begin(self) -> None:
        """Connect to the leader."""
        wanted = LeaderWanted(self.borrower_id, 0, self.session_id, self.client_id)
        self.plant.registry.to_leader(self.group.group_id, wanted)

    def leave(self) -> None:
        """Say goodbye, with a last report of each stream."""
        reports = tuple(self._report(*each) for each in self.held.items())
        self.held.clear()
        goodbye = Disconnect(self.borrower_id, self.epoch, reports)
        self.plant.registry.to_leader(self.group.group_id, goodbye)

    def _take(self, message: ToBorrower) -> None:
        self.epoch = message.leader_epoch
        self.inbox.put_nowait(message)
        match message:
            case Grant(streams=streams):
                self.held |= {each.stream: each.grant_epoch for each in streams}
                self._say(*(self._report(each.stream, each.grant_epoch) for each in streams))
            case Revoke(stream=stream, grant_epoch=epoch) if not self.holding:
                self._say(self._report(stream, epoch), final=True)
            case Revoked(stream=stream, grant_epoch=epoch):
                if self.held.get(stream) == epoch:
                    del self.held[stream]
                finished = RevokeFinished(self.borrower_id, self.epoch, stream, epoch)
                self.plant.registry.to_leader(self.group.group_id, finished)
            case PauseChanged(pause=pause):
                obeyed = PauseObeyed(self.borrower_id, self.epoch, pause.change)
                self.plant.registry.to_leader(self.group.group_id, obeyed)
            case _:
                pass

    def _say(self, *reports: StreamReport, final: bool = False) -> None:
        message = UpdateProgress(self.borrower_id, self.epoch, reports, final)
        self.plant.registry.to_leader(self.group.group_id, message)

    def _report(self, stream: StreamId, epoch: int) -> StreamReport:
        return StreamReport(stream, epoch, Progress(0), 0, sent=0)
