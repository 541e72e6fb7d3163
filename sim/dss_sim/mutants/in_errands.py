"""Mistakes in what operators ask of queues: redrives, discards, and `delivery/errands`."""

from dss_sim.mutants.planting import Mutant

IN_ERRANDS = (
    Mutant(
        "stopped redrive goes on",
        "who does not know yet that a redrive was stopped, or an errand done, has it begin anew",
        "machines.queues._newest",
        "return asked.operation, not asked.ranges",
        "return asked.operation, bool(asked.ranges)",
    ),
    Mutant(
        "given up before it is there",
        "a holder calls what it gives up dealt with while that is on its way to the dead letters",
        "Errands.are_over",
        "all(is_done(each.start, each.end) for each in leaving if each.cause == GIVEN_UP)",
        "True",
    ),
    Mutant(
        "done once lanes are told",
        "an operation is called done before the holders have dealt with what it names",
        "machines.queues.asked_of_holder",
        "errand.operation if errand.ranges else queues[DEAD - 1].redriving",
        "queues[DEAD - 1].redriving",
    ),
    Mutant(
        "what failed meanwhile is forgotten",
        "a record that was out as its lane was taken back fails, and escapes the operation",
        "errands.is_meant",
        "return is_made_of_one or covers(errand.ranges, offset)",
        "return covers(errand.ranges, offset)",
    ),
    Mutant(
        "retry-now undone wrongly",
        "what was brought forward and taken back again comes at once all the same",
        "QueueState.take_errand",
        "normalised((*done, *ranges))",
        "normalised(done)",
    ),
    Mutant(
        "queue after queue",
        "who opens a lane reads one queue before the other, whatever was made of which",
        "EntryOrder._fitting",
        "told_to < self._ends[other]",
        "False",
    ),
)
