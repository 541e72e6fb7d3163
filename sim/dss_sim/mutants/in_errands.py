"""Mistakes in what operators ask of queues: redrives, and `delivery/errands`."""

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
)
