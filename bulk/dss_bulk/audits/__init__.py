"""Audits: whether the records of a topic are there, each once, in their place and in order.

::

    records of a range ──examined──► Partial ┐
    records of a range ──examined──► Partial ┴─merged─► Partial ──► Report
    ...

Invariant: a partial result is small whatever it is of, and what is merged does not depend on how
the parts were grouped, as long as no bound is reached; where one is, the report says what was not
examined. `examining` needs Arrow; what is merged and reported is plain values. Nothing here reads
a topic, so an engine on a cluster has the same functions.
"""
