"""One life of the log: it starts on what lies there, does acts, and ends, in order or not.

Invariant: the same power cycle, chance and acts give the same steps and facts. Any unexpected
report of the log is a violation.
"""

from collections import deque
from random import Random

from dss_core.errors import DiskFailed
from dss_core.ids import StreamId
from dss_sim.log.act_runner import ActRunner
from dss_sim.log.acts import ENDS, Arm, Befalling, Jump, MakeRoom, Numbered, Rot, Stop
from dss_sim.log.bit_rot import rot
from dss_sim.log.calls import Calls, called
from dss_sim.log.faults import Armed, Faults
from dss_sim.log.journal import JournaledStore
from dss_sim.log.ledger import (
    GONE,
    DamageSeen,
    EndSeen,
    FrameRefused,
    FrameStored,
    Ledger,
    Place,
)
from dss_sim.log.one_thread import Died, SteppedLoop, Stuck, one_thread
from dss_sim.log.power_cycle import PowerCycle
from dss_sim.log.rules import (
    Violation,
    judged,
    report_violations,
    together_violations,
    topic_violations,
)
from dss_sim.log.stream_contents import StreamFound, read_streams
from dss_sim.ordering_keys import OrderingKeys
from dssd.log.segment.file import SEGMENT_SUFFIX, SegmentId, parse_name
from dssd.log.segment.rows import all_segment_rows, row_id
from dssd.log.segment_log import SegmentLog
from dssd.log.settings import LogSettings
from dssd.store.paging import scan_all
from dssd.store.rows import BanRow, SegmentRow, StorageTopicRow
from dssd.topics.catalogue import Catalogue

STRAY = "no row names it"
"""What a start reports of a file that does not belong to it."""
READS = (1, 700, 1 << 20)
"""Sizes in bytes of the reads that check a stream."""


class Life:
    """One start; `live` is called once."""

    def __init__(self, cycle: PowerCycle, settings: LogSettings, seed: str) -> None:
        self.violations: list[Violation] = []
        self.reports: list[str] = []
        """The start's reports about files."""
        self._named: set[SegmentId] = set()
        """Segments that had rows when it began."""
        self.topics: set[int] = set()
        """Storage topics that existed when it began."""
        self._cycle = cycle
        self._settings = settings
        self._seed = seed
        self._chance = Random(seed)
        self._faults = Faults(self._chance)
        self._calls = Calls(cycle.root, cycle.steps, self._faults)
        self._loop: SteppedLoop
        self._log: SegmentLog
        self._catalogue: Catalogue
        self._store: JournaledStore

    def live(self, acts: deque[Numbered]) -> None:
        """Start, check everything, do acts up to one that ends a life.

        Acts that were done leave the queue, and so does a `Stop`; another act that ends the life
        stays.
        """
        self._cycle.jump(0)
        with called(self._calls), one_thread(self._chance) as loop:
            self._loop = loop
            try:
                loop.run_until_complete(self._whole(acts))
            except Died:
                pass
            except Stuck:
                self._broken("answers", "all wait, and nobody will ever be answered")
            else:
                for unhandled in loop.unhandled:
                    self._broken("starting", f"nobody took in {unhandled!r}")
            self._calls.end()

    async def _whole(self, acts: deque[Numbered]) -> None:
        while acts and isinstance(acts[0].act, Befalling):
            self._befall(acts.popleft())
        if not await self._start():
            return
        await self._look()
        runner = ActRunner(
            self._cycle,
            self._log,
            self._catalogue,
            self._store,
            OrderingKeys(self._seed),
            self._is_full,
            self._broken,
        )
        while acts and not self.violations:
            if isinstance(acts[0].act, ENDS):
                break
            numbered = acts.popleft()
            self._chance.seed(f"{self._seed} {numbered.number}")
            if isinstance(numbered.act, Befalling):
                self._befall(numbered)
                continue
            await self._do(runner, numbered)
        if acts and isinstance(acts[0].act, Stop) and not self.violations:
            acts.popleft()
            await self._stop()

    def _is_full(self) -> bool:
        return "full" in self._faults.struck_kinds

    def _has_failed(self) -> bool:
        return "eio" in self._faults.struck_kinds

    def _broken(self, rule: str, text: str) -> None:
        self.violations.append(Violation(rule, text))

    def _befall(self, numbered: Numbered) -> None:
        """What happens to a process, and needs none."""
        match numbered.act:
            case Arm(kind, calls, passing, strikes):
                self._faults.arm(Armed(kind, calls, passing, strikes))
            case MakeRoom():
                self._faults.disarm()
            case Jump(by_us):
                self._cycle.jump(by_us)
            case Rot() as act:
                rot(self._cycle, act)

    async def _do(self, runner: ActRunner, numbered: Numbered) -> None:
        failed_before = self._has_failed()
        try:
            await runner.do(numbered.act, f"t{numbered.number}")
        except (Exception, ExceptionGroup) as error:  # noqa: BLE001 - whatever it raises is judged
            if not self._has_failed():
                self._broken("starting", f"{numbered.act} raised {error!r}")
            self._calls.die()
        if self._has_failed():
            await self._loop.quiet()
            # It did not die, though the disk failed.
            when = "before" if failed_before else "during"
            self._broken("answers", f"{numbered.act} was answered; the disk failed {when} it")

    # Starting

    async def _start(self) -> bool:
        """Whether the log is open; on a failing disk it may not be."""
        cycle = self._cycle
        self._store = JournaledStore(cycle.journal, self._loop, self._calls, self._faults)
        self._named = set(await self._segment_rows())
        try:
            self._log = await SegmentLog.open(
                cycle.root,
                self._store,
                storage_topics=[one.row for one in await scan_all(self._store, StorageTopicRow)],
                on_failure=self._failed,
                settings=self._settings,
                wall_us=cycle.clock,
            )
            self._catalogue = await Catalogue.open(self._store, self._log, wall_ms=self._wall_ms)
        except Exception as error:  # noqa: BLE001 - whatever it raises is judged
            if not self._has_failed():
                self._broken("starting", f"{error!r}")
            return False
        if self._has_failed():
            self._broken("answers", "it started, though the disk failed")
        return True

    def _wall_ms(self) -> int:
        return self._cycle.clock() // 1_000

    def _failed(self, failure: BaseException) -> None:
        """The log reports that it cannot go on: the process ends at once.

        Raises:
            Died: always.
        """
        if isinstance(failure, Died):
            self._calls.die()
        if not (isinstance(failure, DiskFailed) and self._has_failed()):
            self._broken("starting", f"it failed: {failure!r}")
        self._calls.die()

    async def _stop(self) -> None:
        try:
            await self._log.close()
        except Exception as error:  # noqa: BLE001 - whatever it raises is judged
            if not self._has_failed():
                self._broken("starting", f"stopping raised {error!r}")
        await self._store.close()

    # Looking

    async def _look(self) -> None:
        """Judge what is there, and take it as known from here on."""
        cycle = self._cycle
        streams = [stream for topic in self._catalogue.topics() for stream in topic.streams()]
        found = await read_streams(self._log, streams, self._chance.choice(READS))
        self.topics = {stream.storage_topic_id for stream in streams}
        names = [topic.name for topic in self._catalogue.topics()]
        self.reports = [reason for _, reason in self._log.quarantined()]
        self.violations += judged(found, cycle.ledger)
        rows = await scan_all(self._store, BanRow)
        published = {found.row.group_id for found in rows}
        self.violations += together_violations(found, cycle.ledger, published)
        self.violations += topic_violations(names, cycle.ledger)
        self.violations += report_violations(self.reports, cycle.ledger)
        self._judge_strays()
        await self._judge_files()
        if not self.violations:
            _learn(cycle, found)

    def _judge_strays(self) -> None:
        """A file is called a stray only if it is one."""
        for path, reason in self._log.quarantined():
            if reason.startswith(STRAY) and parse_name(path) in self._named:
                self._broken("reports", f"{path.name}: {reason}, though one does")

    async def _segment_rows(self) -> dict[SegmentId, SegmentRow]:
        rows = await all_segment_rows(self._store)
        return {row_id(row): row for own in rows.values() for row in own}

    async def _judge_files(self) -> None:
        """Each segment has its row and its file."""
        rows = await self._segment_rows()
        files = {parse_name(path) for path in self._cycle.root.glob(f"*{SEGMENT_SUFFIX}")}
        if self._is_full() or self._cycle.ledger.rotten:
            return
        for segment in files ^ rows.keys():
            what = "row" if segment in files else "file"
            self._broken("files", f"segment {segment} has no {what}")
        active = [segment for segment, row in rows.items() if row.state == "active"]
        if len({segment.storage_topic_id for segment in active}) < len(active):
            self._broken("files", f"two active segments of one topic among {active}")


def _learn(cycle: PowerCycle, found: dict[StreamId, StreamFound]) -> None:
    """Note that the frames that were found stay, and that the others are gone."""
    ledger = cycle.ledger
    bodies = {(frame.stream, frame.body): frame for frame in ledger.frames.values()}
    for stream, one in found.items():
        for there in one.frames:
            frame = bodies[stream, there.body]
            cycle.tell(FrameStored(frame.number, Place(there.base, there.time_us)))
        cycle.tell(EndSeen(stream, one.end))
        if one.damaged:
            cycle.tell(DamageSeen(stream))
    for frame in list(ledger.frames.values()):
        # Nobody can find a frame below the start of its stream.
        could_be_found = frame.stream in found and not ledger.starts_max.get(frame.stream)
        if _is_open(frame.number, ledger) and could_be_found:
            cycle.tell(FrameRefused(frame.number, GONE))


def _is_open(number: int, ledger: Ledger) -> bool:
    if number in ledger.at_risk:
        return True
    return number not in ledger.places and number not in ledger.refused
