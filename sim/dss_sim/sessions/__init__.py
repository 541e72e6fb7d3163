"""A deterministic world for the daemon's asyncio shells around sessions, and for time.

::

    users ─► calls ═pipes═ servicer ▸ sessions ▸ leaders ─► store: dictionaries behind a disk that
                                         ▲                         is slow, full, or dies half-way
      plan: seed, faults                 └── log: real frames in memory
      history ─► checker, rules          every task on a loop of virtual time

`dss_sim.groups` has the real machines and the world's own shells; here the shells are the
real ones: the servicer of Attach, `Sessions`, `Session`, `Scheduler`, `Registry`, leader actors,
`Groups`, `Catalogue`, their task groups, locks, timers and cancellations. A daemon's life has a
loop of its own on one `Timeline`; a crash abandons the loop between two of its steps, and the next
life starts on what the store has. All chance comes from the seed of a `Plan`, so a run is repeated
by its seed to the last event.
"""
