"""Mistakes in the client's `run` and the like: `dss_sim.sessions` judges them by its programs."""

from dss_sim.mutants.planting import Mutant

JUDGE = "dss_sim.sessions.run"

IN_RUNS = (
    Mutant(
        "queue of run not asked about",
        "what waited in `run` is handled after its process stood still, whoever has it by now",
        "KeyedRunner._handle",
        "self._waits(chain) or monotonic() >= self._sure_until",
        "self._waits(chain)",
        JUDGE,
        in_client=True,
    ),
    Mutant(
        "followers not parked",
        "records behind a refused one are handled before it came again",
        "Chain._follows",
        "bool(self._refused) and any(offset < record._at for offset in self._refused)",
        "False",
        JUDGE,
        in_client=True,
    ),
    Mutant(
        "acked copy handed out",
        "what came again is handled though its acknowledgement is durable by now",
        "HeldGrant.acked_meanwhile",
        "offset in self._copies and self.has_acked(offset)",
        "False",
        JUDGE,
        in_client=True,
    ),
    Mutant(
        "acked copy handed out without run",
        "the same of records that are taken one by one, by fetch or as batches",
        "Handout._look_at",
        "self.grant.has_acked(at)",
        "False",
        JUDGE,
        in_client=True,
    ),
    Mutant(
        "cancelled handlers forgotten",
        "what handlers had when their run was cancelled waits for the ack wait, its key does not",
        "KeyedRunner._cancelled",
        "chain.refused(record)",
        "return",
        JUDGE,
        in_client=True,
    ),
    Mutant(
        "hand-out out of turn not named",
        "what `run` handed out past a parked record counts as never handed out",
        "HeldGrant._note_among_waiting",
        "self._early.extend(_without(ranges, again) if again else ranges)",
        "pass",
        JUDGE,
        in_client=True,
    ),
)
