"""Seeded bugs that the simulator must find: ``python -m dss_sim.mutants``.

A simulator that finds nothing may only be blind. So defects are put into the real code one at a
time, also defects that hurt other peers, and seeds are run until one fails. A mutant changes a
piece of syntax that occurs exactly once in the symbol that it names: code may move and be
reformatted, and a refactoring that would disable a mutant makes it fail loudly instead.

`catalogue` gathers the mutants, `symbols` and `anchors` find what one changes, `planting` puts it
into a copy of the package, `trial` runs on that copy in a process of its own, and `sampling`
chooses some. Invariant: the checkout is never written to.
"""
