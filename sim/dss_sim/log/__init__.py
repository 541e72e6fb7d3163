"""The real log on a disk of sectors, from a seed.

::

    plan: settings, acts ──▶ life: the real log, in one thread ──▶ calls: steps ──▶ model of a disk
                               │         ▲                                            │
                               ▼         │ faults                                     ▼
                             ledger: what was asked, told, seen ──▶ rules ◀── a crash, a start

A run is a row of lives on one disk. Between two of them the process stops, is killed, or the power
goes. Some of the crashes that the disk may suffer on the way are also laid out and judged.
"""
