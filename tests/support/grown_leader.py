"""A leader of an ordered group over several storage topics; the test plays everything else."""

from dataclasses import replace

from dss_core.ids import StreamId
from dss_core.progress import Progress
from dssd.machines.leader.events import CursorMove, GoBack, Parents, Rehome, Rehomed, StoredStream
from dssd.machines.leader.lent_stream import StreamState
from dssd.machines.leader.state import Leader
from dssd.machines.messages import (
    Grant,
    GrantedStream,
    LeaderWanted,
    LeaseStreams,
    Revoked,
    RevokeFinished,
    StreamReport,
    UpdateProgress,
)
from dssd.machines.queues import Queues, QueueState
from support.played_leader import LEADER, LeaderRun, session_of

ANN = b"ann"
END = 10


def part(generation: int, at: int = 0) -> StreamId:
    return StreamId(generation + 1, at)


def queues(stream: StreamId, waiting: int = 0, dead: int = 0) -> Queues:
    retry, letters = (StreamId(100 * level + stream.storage_topic_id, stream.partition)
                      for level in (1, 2))  # fmt: skip
    return (
        QueueState(retry, Progress(0), waiting, begun=1, ended=1),
        QueueState(letters, Progress(0), dead),
    )


def stored(
    generation: int, at: int = 0, *, parents: Parents = (), floor: int = 0, sealed: bool = True,
    finished: bool = False, epoch: int = 0,
) -> StoredStream:  # fmt: skip
    stream = part(generation, at)
    return StoredStream(
        stream, Progress(floor), floor, END, END if sealed else None, epoch,
        finished=finished, queues=queues(stream), parents=parents,
    )  # fmt: skip


class Run(LeaderRun):
    """Two generations: one sealed stream, and two that get its keys."""

    def __init__(
        self,
        *streams: StoredStream,
        restarted: bool = False,
        moves: tuple[CursorMove, ...] = (),
    ) -> None:
        self.rehomes: list[Rehome] = []
        self.backs: list[GoBack] = []
        super().__init__(Leader(LEADER), *streams, restarted=restarted, moves=moves)

    def feed(self, given_input: object) -> list[object]:  # type: ignore[override]
        effects = super().feed(given_input)  # type: ignore[arg-type]
        self.rehomes += [each for each in effects if isinstance(each, Rehome)]
        self.backs += [each for each in effects if isinstance(each, GoBack)]
        return effects  # type: ignore[return-value]

    def state(self, generation: int, at: int = 0) -> StreamState:
        return self.leader.streams[part(generation, at)].state

    def join(self, name: bytes = ANN) -> list[GrantedStream]:
        self.tell(LeaderWanted(name, 0, session_of(name), name.decode()))
        self.pass_ms(200)
        return self.granted()

    def granted(self) -> list[GrantedStream]:
        self.pass_ms(200)
        return self.lent()

    def lent(self) -> list[GrantedStream]:
        """The lent streams once everything is durable."""
        return [
            each
            for message in self.commit_all()
            if isinstance(message, Grant | LeaseStreams)
            for each in message.streams
        ]

    def report(
        self, granted: GrantedStream, floor: int, held: Queues, *, final: bool = False
    ) -> None:
        said = StreamReport(
            granted.stream, granted.grant_epoch, Progress(floor), floor, sent=floor, queues=held
        )
        self.tell(UpdateProgress(ANN, LEADER, (said,), final))

    def give_back(self, granted: GrantedStream, floor: int, held: Queues) -> None:
        """Give a stream back with a last report, as its holder does when it is asked to."""
        self.report(granted, floor, held, final=True)
        told = self.commit_all()
        assert any(isinstance(each, Revoked) for each in told)
        self.tell(RevokeFinished(ANN, LEADER, granted.stream, granted.grant_epoch))
        self.commit_all()

    def rehome(self) -> set[StreamId]:
        """Append the stream's entries to the children; returns the streams that are lent then."""
        asked = self.rehomes.pop()
        retry, dead = asked.queues
        done = tuple(
            replace(each, progress=Progress(each.applied_end), begun=0, ended=0)
            for each in (retry, dead)
        )
        self.feed(Rehomed(asked.stream, asked.grant_epoch, done, self.now_ms))
        return {each.stream for each in self.lent()}


def grown(**parent: object) -> Run:
    return Run(
        stored(0, **parent),  # type: ignore[arg-type]
        stored(1, 0, parents=(part(0),), sealed=False),
        stored(1, 1, parents=(part(0),), sealed=False),
    )
