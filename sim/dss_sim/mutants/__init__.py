"""Seeded bugs that the simulator must find: ``python -m dss_sim.mutants``.

A simulator that finds nothing may only be blind. So defects are put into the real code one at a
time, those that hurt the peers among them, and seeds are run until one fails. What a mutant may
change is a piece of text that occurs exactly once in its file: a refactoring that would disable it
makes it fail loudly instead.

`catalogue` gathers the mutants, `planting` puts one into a copy of the package, `trial` runs in a
process of its own on that copy. Invariant: the checkout is never written to.
"""
