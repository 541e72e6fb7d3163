"""Mistakes in what operators ask of queues: redrives, and `delivery/errands`."""

from dss_sim.mutants.planting import Mutant

IN_ERRANDS = (
    Mutant(
        "redriven twice",
        "the holder after one that died brings back what that one had brought back",
        "Lane._to_redrive",
        "without(self._dead.redrive.ranges, self._done(DEAD))",
        "self._dead.redrive.ranges",
    ),
    Mutant(
        "stopped redrive goes on",
        "what an operator stopped is brought back by the next holder",
        "machines.queues.QueueState.stop_redrive",
        "replace(self, redrive=Redrive(self.redrive.operation))",
        "self",
    ),
    Mutant(
        "given up before it is there",
        "a holder calls what it gives up dealt with while that is on its way to the dead letters",
        "Errands.are_over",
        "all(is_done(each.start, each.end) for each in leaving if each.cause == GIVEN_UP)",
        "True",
    ),
    Mutant(
        "dealt with before it is durable",
        "an operation is called done by what its holder reported, before a commit has it",
        "moves_under_way._dealt_with",
        "retry, dead = lent.saved_queues",
        "retry, dead = lent.queues",
    ),
    Mutant(
        "what failed meanwhile is forgotten",
        "a record that was out as its lane was taken back fails, and escapes the operation",
        "errands.is_meant",
        "return is_made_of_one or covers(errand.ranges, offset)",
        "return covers(errand.ranges, offset)",
    ),
    Mutant(
        "brought forward by an undo",
        "what is to wait for its time again comes at once",
        "machines.queues.QueueState.take_errand",
        "what == RETRY_NOW",
        "True",
    ),
)
