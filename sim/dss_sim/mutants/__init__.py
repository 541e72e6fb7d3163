"""Seeded bugs that the simulator must find: ``python -m dss_sim.mutants``.

A simulator that finds nothing may only be blind. So defects are put into the real code one at a
time, those that hurt the peers among them, and seeds are run until one fails. What a mutant changes
is a piece of syntax that occurs exactly once in the symbol that it names: code may move and be
formatted anew, and a refactoring that would disable a mutant makes it fail loudly instead.

`catalogue` gathers the mutants, `symbols` and `anchors` find what one changes, `planting` puts it
into a copy of the package, `trial` runs in a process of its own on that copy, `sampling` chooses
some. Invariant: the checkout is never written to.
"""
