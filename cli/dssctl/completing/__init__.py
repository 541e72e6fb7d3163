"""Completion of words in a shell: names that exist now, within the time between two key strokes.

A list that `dssctl` shows leaves its names in the user's cache; ``dssctl __complete`` answers from
there. Invariant: what answers loads the standard library's smallest parts only, writes nothing but
safe names, and never an error.
"""
