"""The whole proof in one command: ``python -m dss_sim.proof``, or ``make proof``.

    steps ─► runner ─► ledger (a file a tree of sources) ─► report (one page)

`make test` runs samples of each kind of proof; this runs all of it: every seed, mutant, kill point,
crash image and flipped bit. It takes hours, so it may be interrupted: each step that passed is
noted under a fingerprint of the sources, and the next call goes on after it.
"""
