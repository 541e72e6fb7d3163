"""A deterministic world in which leaders, borrowers and sessions live through every fault.

::

    workload ─► clients ═pipes═ sessions ─┐                       ┌─ leaders ─► store
                                          └─── network, lossy ────┘
    workload ─► producers ═calls═ writer ─► log on a disk, mortal ─► sessions, leaders
       plan: seed, faults            history ─► checker            machines ─► rules

The real machines of `dssd.machines` run here, with the real agent and handler of a session, the
real claim of a leader, the dictionary store and the log's real state of producers; only the shells
around them belong to the world. All chance comes from the seed of a `Plan`, all time from one
`Schedule`, so a run is repeated by its seed to the last event. Clients, producers, leaders and the
log report to a `History`, which the `Checker` judges, event by event, by the invariants that
docs/proof/groups-simulator.md names.
"""
