"""A deterministic world in which leaders, borrowers and sessions live through every fault.

::

    workload ─► clients ═pipes═ sessions ─┐                       ┌─ leaders ─► store
                                          └─── network, lossy ────┘
    workload ─► producers ═calls═ writer ─► log on a disk, mortal ─► sessions, leaders
       plan: seed, faults            history ─► checker            machines ─► rules

The real machines of `dssd.machines` run here, with the real agent and handler of a session, the
real claim of a leader, the dictionary store and what the log knows of producers; only the shells
around them are the world's own. All chance comes from the seed of a `Plan`, all time from one
`Schedule`; so a run is repeated by its seed to the last event. What clients, producers, leaders and
the log did is told to a `History`, which the `Checker` judges, event by event, by the invariants
that docs/proof/groups-simulator.md names.
"""
