"""Audits: check that the records of a topic are there, each once, in their place and in order.

::

    records of a range ──examined──► Partial ┐
    records of a range ──examined──► Partial ┴─merged─► Partial ──► Report
    ...

Invariant: a partial result is small whatever it covers, and a merged result does not depend on how
the parts were grouped, as long as no bound is reached; if one is, the report says what was not
examined. `examining` needs Arrow; merging and reporting are plain values. Nothing here reads a
topic, so an engine on a cluster uses the same functions.
"""
