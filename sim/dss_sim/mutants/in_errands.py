"""Mistakes in what operators ask of queues: redrives, and `delivery/errands`."""

from dss_sim.mutants.planting import Mutant

IN_ERRANDS = (
    Mutant(
        "what failed goes along",
        "a redrive brings back what failed of its keys after it was planned",
        "RedrivenKeys.followed",
        "not each.attempt",
        "True",
    ),
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
        "dealt with before it is durable",
        "an operation is called done by what its holder reported, before a commit has it",
        "LentStream.at_work",
        "asked_of_holder(self.saved_queues)",
        "asked_of_holder(self.queues)",
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
